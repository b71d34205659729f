"""What a run takes from a recording: replay, resume, pins and forks."""

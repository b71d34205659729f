"""What the index says where it cannot be opened, and what it holds where it can."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from workbench.store.faults import StoreBusy, StoreError
from workbench.store.index.index import Index
from workbench.store.store import Store


def main(folder: Path, fixed: Path | None = None) -> dict[str, Any]:
    try:
        index = Index(Store(folder, fixed=fixed))
    except StoreBusy as busy:
        return {"pid": busy.pid, "says": str(busy), "imported": "chdb" in sys.modules}
    except StoreError as error:
        return {"says": str(error), "imported": "chdb" in sys.modules}
    with index:
        index.catch_up()
        events = index.sql("SELECT count() FROM events").one()
        return {"events": events, "notice": index.notice, "sent": index.progress.records}


if __name__ == "__main__":
    print(json.dumps(main(*map(Path, sys.argv[1:]))))

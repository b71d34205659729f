"""What the index says where it cannot be opened, and what it holds where it can."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from workbench.store.faults import StoreBusy, StoreError
from workbench.store.index import Index
from workbench.store.store import Store


def main(folder: Path) -> dict[str, Any]:
    try:
        index = Index(Store(folder))
    except StoreBusy as busy:
        return {"pid": busy.pid, "says": str(busy), "imported": "chdb" in sys.modules}
    except StoreError as error:
        return {"says": str(error), "imported": "chdb" in sys.modules}
    with index:
        index.catch_up()
        return {"events": index.sql("SELECT count() FROM events").one(), "notice": index.notice}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))

"""A process that has everything imported and forks a child for each run, which so begins at once and may be killed.

It reads a line of JSON for each: {"config": …, "runs": [{"environment": …, "options": …}, …]}. It answers with the
numbers of the children's processes, and when all have ended with how each of them did.
"""

import json
import os
import sys
import traceback


def child(config: dict, run: dict) -> None:
    os.environ |= run.get("environment", {})
    log = open(run["log"], "a", buffering=1)  # noqa: SIM115
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    status = 1
    try:
        import torch

        from regard.training.progressing import Stopped
        from regard.training.running import train

        torch.set_num_threads(1)
        try:
            train(config, run.get("overrides", ()), **run.get("options", {}))
            status = 0
        except Stopped as stopped:
            print(f"regard: {stopped}", file=sys.stderr)
            status = 128 + stopped.signal_number
    except BaseException:
        traceback.print_exc()
    finally:
        log.flush()
        os._exit(status)


def main() -> None:

    import regard.training.running  # noqa: F401

    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        children = []
        for run in asked["runs"]:
            pid = os.fork()
            if pid == 0:
                child(asked["config"], run)
            children.append(pid)
        print(json.dumps({"children": children}), flush=True)
        statuses = dict(os.wait() for _ in children)
        print(json.dumps({"statuses": [os.waitstatus_to_exitcode(statuses[pid]) for pid in children]}), flush=True)


if __name__ == "__main__":
    main()

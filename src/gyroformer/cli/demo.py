"""``gyroformer demo``: the main job on data that every machine has."""

from gyroformer.cli.options import Json


def demo(as_json: Json = False) -> None:
    """Show the main job, with nothing to download.

    Example: gyroformer demo
    """
    raise NotImplementedError

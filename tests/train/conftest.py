from toy_fixtures import model, settings, task, without_sync

__all__ = ["model", "settings", "task", "without_sync"]

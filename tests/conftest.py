from tests.in_browser import browser, context

__all__ = ["browser", "context"]

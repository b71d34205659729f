"""The browser tools: a page in a Chromium without a window, driven by Playwright, an optional extra."""

"""A model behind HTTP: LibreTranslate's interface, explanations, and a page for people. `app.make` puts it together."""

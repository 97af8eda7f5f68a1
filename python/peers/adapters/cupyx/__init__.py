from types import SimpleNamespace

cusparse = SimpleNamespace(getVersion=lambda: 0)

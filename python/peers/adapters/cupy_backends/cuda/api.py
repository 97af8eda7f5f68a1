from types import SimpleNamespace

driver = SimpleNamespace()
runtime = SimpleNamespace(is_hip=False)

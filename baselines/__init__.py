"""Other systems: policies (when to write) times backends (what to write), under SimulEval."""

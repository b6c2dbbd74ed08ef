"""Hikari: a causal Whisper that says WAIT or a piece of text every 80 ms, as a SimulEval agent."""

__version__ = "0.1.0"

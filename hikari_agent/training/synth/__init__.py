"""Synthetic speech whose word times are known exactly: many voices of espeak-ng, flite and Piper behind one interface."""

from .speech import PHONEMES, Speech, Voice
from .voices import VoiceFamily, draw, held_out_voices, known_voices

__all__ = ["PHONEMES", "Speech", "Voice", "VoiceFamily", "draw", "held_out_voices", "known_voices"]

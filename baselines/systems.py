"""Every system that can be run, as data: its agent, its options, and the one knob that trades quality for latency.

A sweep plans rows of `SYSTEMS` times knob values; Hikari is a row like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Knob:
    """The option that moves a system along its curve. `values` is what a sweep takes when none are given."""

    name: str  # as in tables and on the command line, frame_threshold
    flag: str  # as SimulEval gets it, --policy-frame-threshold
    unit: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class SystemSpec:
    """All that is needed to start a system under SimulEval.

    `options` are flags with their values. `model` is what `model_flag` gets by default: a name that
    `python -m scripts.fetch` knows, a hub id, or None if it has to be given. `pairs` are (source, target) languages;
    ("*", "*") is any language as it is spoken, ("*", "en") any into English.
    `segment_ms` is the source segment size it is run with: what its decisions are a multiple of.
    """

    name: str
    agent_class: str
    options: dict[str, str] = field(default_factory=dict)
    knob: Knob | None = None
    model_flag: str = ""
    model: str | None = None
    language_flags: tuple[str, str] = ("", "")  # for the source and the target language
    task_flag: str = ""  # gets "transcribe" where both are the same, else "translate"
    threads_flag: str = ""
    pairs: tuple[tuple[str, str], ...] = ()
    segment_ms: int = 80
    licence: str = ""
    citation: str = ""

    def arguments(self, model: str, source: str, target: str, value: float | None) -> list[str]:
        """The command line for SimulEval, from --agent-class on; `value` is the knob's."""
        flags = dict(self.options)
        flags[self.model_flag] = model
        for flag, language in zip(self.language_flags, (source, target), strict=True):
            if flag:
                flags[flag] = language
        flags[self.task_flag] = "transcribe" if source == target else "translate"
        if self.knob and value is not None:
            flags[self.knob.flag] = f"{value:g}"
        listed = [part for flag, setting in flags.items() for part in (flag, setting)]
        return ["--agent-class", self.agent_class, *listed]


WHISPER = {
    "agent_class": "baselines.agent.PolicyAgent",
    "model_flag": "--policy-model",
    "model": "whisper-base",
    "language_flags": ("--policy-language", ""),
    "task_flag": "--policy-task",
    "threads_flag": "--policy-num-threads",
    "segment_ms": 100,
    "licence": "MIT (weights and code)",
}


def _whisper(name: str, policy: str, knob: Knob | None, citation: str, **options: str) -> SystemSpec:
    """Whisper under one policy: any spoken language written down, or translated into English."""
    flags = {"--policy-name": policy, **{f"--policy-{k.replace('_', '-')}": v for k, v in options.items()}}
    return SystemSpec(name, options=flags, knob=knob, citation=citation, pairs=(("*", "*"), ("*", "en")), **WHISPER)  # type: ignore[arg-type]


# Licence and citation of the shipped checkpoint.
TINY = (
    "MIT (code and weights)", "arXiv:2603.11578 (method); trained on synthetic speech, docs/training.md",
)  # fmt: skip


def _hikari(
    name: str, model: str, boost: str, licence: str, citation: str, more: tuple[tuple[str, str], ...] = ()
) -> SystemSpec:
    """A Hikari checkpoint under its WAIT penalty, from English into four languages and for the pairs in `more`.

    The paper's probe is a constant penalty (boost 0); the released server adds a boost (0.3) while the model is silent.
    """
    return SystemSpec(
        name,
        "hikari_agent.agent.HikariAgent",
        options={"--hikari-boost": boost},
        knob=Knob("wait_penalty", "--hikari-wait-penalty", "logit", tuple(range(-2, 7))),
        model_flag="--hikari-model",
        model=model,
        language_flags=("", "--hikari-target"),
        task_flag="--hikari-task",
        threads_flag="--hikari-num-threads",
        pairs=(("en", "en"), ("en", "de"), ("en", "ja"), ("en", "ru"), *more),
        segment_ms=80,
        licence=licence,
        citation=citation,
    )


SYSTEMS: dict[str, SystemSpec] = {
    spec.name: spec
    for spec in (
        _hikari(
            "hikari", "sbintuitions/hikari-medium", "0", "MIT (code); see the model card for the weights",
            "arXiv:2603.11578", more=(("ja", "en"),),
        ),
        _hikari("hikari-tiny", "hikari-tiny", "0", *TINY),
        _hikari("hikari-tiny-adaptive", "hikari-tiny", "0.3", *TINY),
        _whisper(
            "whisper-alignatt", "alignatt",
            Knob("frame_threshold", "--policy-frame-threshold", "encoder frames of 20 ms", (4, 8, 12, 25, 50)),
            "arXiv:2305.11408 (AlignAtt), arXiv:2212.04356 (Whisper)", chunk_ms="500",
        ),
        _whisper(
            "whisper-local-agreement", "local-agreement",
            Knob("chunk_ms", "--policy-chunk-ms", "ms", (500, 1000, 2000)),
            "arXiv:2307.14743 (Whisper-Streaming), arXiv:2005.11185 (LocalAgreement)",
        ),
        _whisper(
            "whisper-wait-k", "wait-k", Knob("k", "--policy-k", "source units of 400 ms", (1, 3, 5, 7, 9)),
            "arXiv:1810.08398 (wait-k)", chunk_ms="400",
        ),
        _whisper("whisper-offline", "at-end", None, "arXiv:2212.04356 (Whisper)"),
    )
}  # fmt: skip


def takes(spec: SystemSpec, source: str, target: str) -> bool:
    """Whether the system writes `target` from speech in `source`.

    >>> takes(SYSTEMS["hikari"], "en", "de"), takes(SYSTEMS["whisper-alignatt"], "en", "de")
    (True, False)
    """
    any_language = ("*", "*") if source == target else ("*", target)
    return (source, target) in spec.pairs or any_language in spec.pairs


def system(name: str) -> SystemSpec:
    """The row of that name. Raises KeyError listing the known ones."""
    if name not in SYSTEMS:
        raise KeyError(f"no system '{name}'. Known: {', '.join(SYSTEMS)}")
    return SYSTEMS[name]

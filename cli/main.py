"""The `sr-bench` command: finds the command's module by name and imports only that one."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

import click

from cli.output import Ctx, show_error
from resources.errors import SrBenchError, Unavailable

COMMANDS: dict[str, tuple[str, str, str]] = {
    # name: (module, attribute, one line for --help)
    "catalog": ("cli.catalog", "catalog", "List the benchmarks: kinds, sizes, versions, licences."),
    "dataset": ("cli.dataset", "dataset", "Prepare, combine and browse frozen task sets."),
    "target": ("cli.target", "target", "Register and list the endpoints under comparison."),
    "plan": ("cli.plan", "plan", "Verify a manifest and freeze it into a plan."),
    "run": ("cli.run", "run", "Run a frozen plan."),
    "runs": ("cli.run", "runs", "List runs."),
    "show": ("cli.show", "show", "Show one run: progress, results, calls, events."),
    "cancel": ("cli.run", "cancel", "Stop a run; what was sent stays recorded."),
    "report": ("cli.report", "report", "Report accuracy, tokens, cost and latency of a run."),
    "compare": ("cli.report", "compare", "Compare candidate runs with the strongest single model."),
    "reconcile-usage": ("cli.report", "reconcile_usage", "Verify recorded usage against retained streams."),
    "rebuild": ("cli.report", "rebuild", "Rebuild derived call records from raw evidence and compare."),
    "recover-plan": (
        "cli.recovery",
        "recover_plan",
        "List the cells of a run that may be continued or retried.",
    ),
    "recover": ("cli.recovery", "recover", "Continue reviewed cells in a separate child run."),
    "lab": ("cli.lab", "lab", "Serve simulated models on loopback to rehearse a plan."),
    "ui": ("cli.ui", "ui", "Open the Dagster UI on this store."),
}


EXIT_UNEXPECTED = 1


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used; `--help` imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--store", "store_path", metavar="DIR", help="Store folder (default: $SR_BENCH_STORE, else the user's)."
)
@click.option("--json", "as_json", is_flag=True, help="Print data and errors as JSON.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.version_option(package_name="sr-bench")
@click.pass_context
def app(ctx: click.Context, store_path: str | None, as_json: bool, debug: bool) -> None:
    """Is the LLM router better, cheaper or neither than single models? Evidence on frozen tasks.

    The way: dataset prepare → target register → plan → run → report → compare.
    """
    ctx.obj = Ctx(store_path, as_json, debug)


def refuse_neighbour(paths: list[str]) -> None:
    """Raise where the package `vllm-sr` is installed in this environment: its import package is called `cli` too,
    and which of the two Python finds is a matter of luck."""
    for folder in paths:
        if folder and any(Path(folder).glob("vllm_sr-*.dist-info")):
            raise SrBenchError(
                f"vllm-sr is installed in the same environment ({folder}); both have an import package `cli`.",
                code="environment",
                mend="Give sr-bench an environment of its own, for example `uv tool install` or `make install`.",
            )


def flags_first(arguments: list[str]) -> list[str]:
    """The arguments with `--json` and `--debug`, wherever they stand before a `--`, moved to the front.

    They are options of the whole command; people write them at its end.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    flags = [argument for argument in arguments[:end] if argument in ("--json", "--debug")]
    rest = [argument for argument in arguments[:end] if argument not in ("--json", "--debug")]
    return [*dict.fromkeys(flags), *rest, *arguments[end:]]


def main() -> None:
    """Entry point; ends the process with the exit code of the protocol."""
    arguments = flags_first(sys.argv[1:])
    as_json = "--json" in arguments[:2]
    debug = "--debug" in arguments[:2]
    try:
        refuse_neighbour(sys.path)
        code = app.main(arguments, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except SrBenchError as error:
        if debug:
            raise
        show_error(error, as_json=as_json)
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        sys.exit(130)
    except KeyboardInterrupt:
        sys.exit(130)
    except click.ClickException as error:
        show_error(SrBenchError(error.format_message(), code="usage"), as_json=as_json)
        sys.exit(2)
    except BrokenPipeError:
        # Whoever read our output has had enough; nothing may be flushed into the closed pipe at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if debug:
            raise
        readable = os_error(error)
        show_error(readable, as_json=as_json)
        sys.exit(readable.exit_code)
    except Exception as error:
        if debug:
            raise
        show_error(unexpected(error), as_json=as_json)
        sys.exit(EXIT_UNEXPECTED)


def os_error(error: OSError) -> SrBenchError:
    """What the system refused, for people."""
    from resources.durable import disk_error

    place = Path(str(error.filename)) if error.filename else None
    readable = disk_error(error, place or Path("the store"))
    if readable is not None:
        return readable
    return Unavailable(
        f"{error.strerror or type(error).__name__}{f': {place}' if place else ''}",
        code="system",
        mend="Check that the path is what it should be, and that you may read and write there.",
    )


def unexpected(error: Exception) -> SrBenchError:
    """An error that no part of the program foresaw, in one line; its type and text, never a traceback."""
    return SrBenchError(
        f"{type(error).__name__}: {error}",
        code="unexpected",
        mend="Run the command with --debug to see where; if it is not your system's fault, please report it.",
    )


if __name__ == "__main__":
    main()

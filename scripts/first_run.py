"""From a fresh clone to a trained model: `python3 scripts/first_run.py`. Needs Python 3.10 and a network, nothing else.

Makes `.venv` in the repository, installs the package into it in the versions that were tested, and trains on the
bundled corpus; arguments are passed on to `seq2seq train`. With --tests it installs the checking tools too and runs the
tests; arguments are passed on to pytest. A second start finds everything in place and loses no time.

Written for the standard library alone, and so that an older Python reads it far enough to be told what is missing.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "seq2seq-installed"
OLDEST = (3, 10)
TORCH_FOR_CPU = "https://download.pytorch.org/whl/cpu"


HELP = """\
usage: python3 scripts/first_run.py [--help] [--tests] [ARGUMENT ...]

Makes a virtual environment in .venv, installs the package into it, trains on the bundled corpus and scores the result.
A second start finds everything in place: it goes on with a training that was broken off, or says how to translate.

  --help     shows this and makes nothing
  --tests    installs the checking tools too and runs the tests instead; each ARGUMENT goes to pytest
  ARGUMENT   goes to `seq2seq train`, such as --overwrite, to train anew, or a config of your own

examples:
  python3 scripts/first_run.py
  python3 scripts/first_run.py --set training.epochs=2 --run runs/short
  python3 scripts/first_run.py --tests
"""


class SetUpError(Exception):
    """What is missing, and what to do about it."""


def main(arguments):
    """Sets up what is not set up yet, then trains or tests; the status of the command that was run last."""
    if "--help" in arguments or "-h" in arguments:
        print(HELP, end="")
        return 0
    if sys.version_info < OLDEST:
        found, needed = sys.version.split()[0], ".".join(map(str, OLDEST))
        raise SetUpError(f"Python {needed} or newer is needed and this is {found}; start the script with a newer one.")
    tests = "--tests" in arguments
    arguments = [argument for argument in arguments if argument != "--tests"]
    if not venv_program("python").exists():
        make_venv()
    install("dev" if tests else "")
    if tests:
        return run([venv_program("python"), "-m", "pytest", *arguments], cwd=ROOT)
    if not arguments:
        folder = Path(run_folder([]))
        if (folder / "test.json").exists():
            say(f"{folder} is trained already; to train it anew, add --overwrite. Translate sentences of your own:")
            print(f"  {shown(venv_program('seq2seq'))} translate {folder}")
            return 0
        if (folder / "config.yaml").exists():
            say(f"{folder} has been begun; going on with it.")
            arguments = ["--run", str(folder), "--resume"]
    # Where the person stands, so that paths in the arguments and the run folder are where they expect them.
    status = run([venv_program("python"), "-m", "seq2seq", "train", *arguments])
    if status == 0:
        say("Done. Now translate sentences of your own:")
        print(f"  {shown(venv_program('seq2seq'))} translate {run_folder(arguments)}")
    return status


def make_venv():
    """Makes .venv with the first tool that is there; Debian keeps Python's own in a package of its own."""
    say(f"Making {VENV}")
    existed = VENV.exists()
    tools = [[sys.executable, "-m", "venv"], [sys.executable, "-m", "virtualenv"]]
    if shutil.which("uv"):
        tools.append([shutil.which("uv"), "venv", "--seed", "--python", sys.executable])
    said = []
    for tool in tools:
        done = subprocess.run([*tool, str(VENV)], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        said += done.stderr.strip().splitlines()[-1:]
        if not existed:  # half an environment would be taken for a whole one at the next start
            shutil.rmtree(str(VENV), ignore_errors=True)
    if existed:
        raise SetUpError(f"{VENV} is there but holds no working Python; remove it and start again.")
    why = f" ({'; '.join(said)})" if said else ""
    raise SetUpError(
        f"This Python cannot make a virtual environment{why}. On Debian or Ubuntu: sudo apt install python3-venv; "
        f"elsewhere: {Path(sys.executable).name} -m pip install --user virtualenv. Then start again."
    )


def install(extra):
    """Installs the package (and an extra), unless the same was installed before."""
    wanted = fingerprint()
    done = STAMP.read_text(encoding="utf-8").split() if STAMP.is_file() else []
    before = done[1:] if done[:1] == [wanted] else None
    if before is not None and (not extra or extra in before):
        return
    say("Installing; PyTorch is large, so the first time takes some minutes")
    if subprocess.run([str(venv_program("python")), "-m", "pip", "--version"], capture_output=True).returncode != 0:
        run([venv_program("python"), "-m", "ensurepip"])  # `uv venv` leaves pip out
    package = f".[{extra}]" if extra else "."
    cpu = needs_cpu_build() and answers(f"{TORCH_FOR_CPU}/torch/")
    if pip_install(package, ["-c", "constraints.txt"], cpu) != 0:
        say("Once more without constraints.txt, whose versions may not exist for this Python or platform")
        if pip_install(package, [], cpu) != 0:
            raise SetUpError("The installation failed, and pip's own words above say why; it needs a network.")
    STAMP.write_text(" ".join([wanted, *(before or []), extra]).strip() + "\n", encoding="utf-8")


def pip_install(package, constraints, cpu):
    """Installs torch, if its CPU build was asked for, and then the package with all the rest; pip's status."""
    pip = [venv_program("python"), "-m", "pip", "--disable-pip-version-check", "install", *constraints]
    if cpu:
        # Alone: that index holds no other package in the versions of constraints.txt.
        status = run([*pip, "--no-deps", "--index-url", TORCH_FOR_CPU, "torch"], cwd=ROOT)
        if status != 0:
            return status
    return run([*pip, "-e", package], cwd=ROOT)


def needs_cpu_build():
    """True where PyTorch's build for CPUs spares gigabytes of CUDA: on Linux without an NVIDIA GPU."""
    return sys.platform.startswith("linux") and shutil.which("nvidia-smi") is None


def answers(address):
    """True if the server answers within three seconds, looking up its name included."""
    heard = []

    def ask():
        try:
            with urllib.request.urlopen(address, timeout=3):
                heard.append(True)
        except Exception:  # whatever is wrong with the network, the plain index is the answer
            return

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(3)
    return bool(heard)


def fingerprint():
    """A number for what decides the installation: the two files, this Python and the folder."""
    digest = hashlib.sha256(f"{sys.version} {ROOT}".encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()[:16]


def venv_program(name):
    """A program of the environment, where this platform keeps it."""
    return VENV / "Scripts" / f"{name}.exe" if os.name == "nt" else VENV / "bin" / name


def run_folder(arguments):
    """The run folder to name at the end: what --run says, or else the config."""
    for place, argument in enumerate(arguments):
        if argument == "--run" and arguments[place + 1 :]:
            return arguments[place + 1]
        if argument.startswith("--run="):
            return argument[len("--run=") :]
    configs = [argument for argument in arguments if argument.endswith((".yaml", ".yml"))]
    config = Path(configs[0]) if configs else ROOT / "configs" / "english_chinese.yaml"
    found = re.search(r"^run:\s*([^\s#]+)", config.read_text(encoding="utf-8"), re.MULTILINE)
    return found.group(1) if found else "RUN"


def shown(path):
    """A path as a person would type it here."""
    return path.relative_to(Path.cwd()) if Path.cwd() in path.parents else path


def run(command, cwd=None):
    """Runs a command in sight of the person; its status."""
    process = subprocess.Popen([str(word) for word in command], cwd=None if cwd is None else str(cwd))
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # Ctrl-C reached the command too: let it save what it has and leave by itself


def say(text):
    """One line of ours between the lines of others."""
    print(f"first_run: {text}", flush=True)


if __name__ == "__main__":
    try:
        ended = main(sys.argv[1:])
        sys.stdout.flush()
        sys.exit(ended)
    except SetUpError as error:
        sys.exit(f"first_run: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough; Python would complain of it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)

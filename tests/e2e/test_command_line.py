"""The command lines that both programs describe: help, manual pages, completion."""

import re
import subprocess

import pytest

from testing.daemon import BUILD, commands_of, reprise, run_reprised

PROGRAMS = {"reprise": lambda shell: reprise("completion", shell),
            "reprised": lambda shell: run_reprised("--completion", shell).stdout}


@pytest.fixture
def script(tmp_path):
    """Writes the completion script of a program for a shell; its path."""
    def write(program, shell):
        path = tmp_path / f"{program}.{shell}"
        path.write_text(PROGRAMS[program](shell))
        return str(path)
    return write


def completed_by_bash(path, program, *words):
    """Returns the words that bash offers after `words`, the last of them unfinished."""
    line = "COMP_WORDS=({}); COMP_CWORD={}".format(
        " ".join(f"'{word}'" for word in (program, *words)), len(words))
    call = f". {path}; {line}; _{program}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "--norc", "-c", call], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_flags_and_values(script):
    path = script("reprise", "bash")
    assert "infer" in completed_by_bash(path, "reprise", "in")
    assert completed_by_bash(path, "reprise", "store", "ver")[0] == "verify"
    assert "--lengths" in completed_by_bash(path, "reprise", "bench", "--len")
    assert set(completed_by_bash(path, "reprise", "completion", "")) >= {"bash", "zsh", "fish"}
    assert "avx2" in completed_by_bash(path, "reprise", "check", "m.onnx", "--max-isa", "av")
    daemon = script("reprised", "bash")
    assert completed_by_bash(daemon, "reprised", "--device", "") == ["cpu", "reference"]
    assert completed_by_bash(daemon, "reprised", "--device", "=", "r") == ["reference"]


def test_fish_completes_commands_flags_and_values(script):
    def completed(program, line):
        done = subprocess.run(["fish", "--no-config", "-c",
                               f"source {script(program, 'fish')}; complete -C '{line}'"],
                              capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return {row.split("\t")[0] for row in done.stdout.splitlines()}
    assert "infer" in completed("reprise", "reprise in")
    assert {"list", "verify"} <= completed("reprise", "reprise store ")
    assert "--lengths" in completed("reprise", "reprise bench --len")
    assert completed("reprised", "reprised --device ") == {"cpu", "reference"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_zsh_reads_its_script(script, program):
    """It defines a function for each command; completion itself wants a terminal."""
    call = ("autoload -Uz compinit; compinit -D -u; "
            f"source {script(program, 'zsh')}; print -l ${{(k)functions}}; print $_comps[{program}]")
    done = subprocess.run(["zsh", "-f", "-c", call], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    names = set(done.stdout.split())
    assert f"_{program}" in names
    if program == "reprise":
        assert {f"_reprise_{name}" for name in commands_of()} <= names


def test_every_command_but_a_show_and_texts_for_other_programs_takes_json():
    without = {(name,) for name in ("demo", "completion", "man")}
    commands = [(name,) for name in commands_of() if name != "store"]
    commands += [("store", name) for name in commands_of("store")]
    assert len(commands) > 40
    assert {words for words in commands if "--json" not in reprise(*words, "--help").split()} == without


@pytest.mark.parametrize("text", [lambda: reprise("man"), lambda: reprise("man", "infer"),
                                  lambda: reprise("man", "store list"),
                                  lambda: run_reprised("--man").stdout])
def test_manual_pages_are_read_without_a_warning(text):
    done = subprocess.run(["groff", "-k", "-ww", "-man", "-Tutf8"], input=text(),
                          capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith("REPRISE") and "EXIT STATUS" in re.sub(r"(.)\x08\1", r"\1", done.stdout)


def test_manual_pages_have_every_command_and_flag():
    page = reprise("man").replace("\\-", "-")
    for name in commands_of():
        assert f'.SS "reprise {name} ' in page, name
    flags = set(re.findall(r"\\fB(--[a-z][a-z0-9-]*)\\fR", run_reprised("--man").stdout.replace("\\-", "-")))
    assert flags == set(re.findall(r"^  (?:-\w, )?(--[a-z][a-z0-9-]+)", run_reprised("--help").stdout, re.M))
    assert len(flags) > 60


def test_mistakes_name_what_was_probably_meant():
    done = reprise("embd", "minilm", check=False)
    assert done.returncode == 2
    assert done.stderr == "reprise: there is no command 'embd'; did you mean embed? (see reprise --help)\n"
    assert "did you mean infer?" in reprise("man", "infr", check=False).stderr
    assert "did you mean --device?" in run_reprised("--devise", "cpu").stderr


def test_help_fits_the_terminal():
    """`script` gives it one of 70 columns."""
    done = subprocess.run(["script", "-qec", f"stty cols 70; {BUILD / 'reprise'} infer --help",
                           "/dev/null"], capture_output=True, text=True, check=True)
    lines = done.stdout.replace("\r", "").splitlines()
    examples = lines.index("Examples:")
    assert max(map(len, lines[:examples])) <= 70 < max(map(len, reprise("infer", "--help").splitlines()))

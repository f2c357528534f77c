"""Shell scripts, cron lines and units: right by their own tools, and run where they can be."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import yaml
from croniter import croniter

from tests.cluster.harm import send, wait_for
from tests.cluster.processes import free_ports
from tests.cluster.slurm import running_slurm, wait_until_empty
from tests.conftest import require_tool
from tests.deploy.pages import DEPLOY

SCRIPTS = [
    path
    for path in [*sorted(DEPLOY.rglob("*")), DEPLOY.parent / ".ci" / "run"]
    if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env bash")
]
CRONTABS = sorted(DEPLOY.rglob("*crontab"))
UNITS = sorted((DEPLOY / "systemd").glob("bigkd-*"))


def identity(path):
    return str(path.relative_to(DEPLOY.parent))


def sh(*command, **options):
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True, text=True, check=False, timeout=120, **options,
    )  # fmt: skip


def stub(path, body):
    """A program that stands in for another."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("path", SCRIPTS, ids=identity)
def test_script__has_no_mistake_that_shellcheck_knows(path):
    shellcheck = Path(sys.executable).with_name("shellcheck")
    assert sh("bash", "-n", path).returncode == 0
    done = sh(shellcheck, "--severity=style", path)
    assert done.returncode == 0, done.stdout
    assert path.suffix == ".sbatch" or os.access(path, os.X_OK)


@pytest.mark.parametrize("path", CRONTABS, ids=identity)
def test_cron_line__is_every_night(path):
    lines = path.read_text("utf-8").splitlines()
    (line,) = [line for line in lines if line and not re.match(r"#|[A-Z]+=", line)]
    schedule = " ".join(line.split()[:5])
    assert croniter.is_valid(schedule)
    assert croniter.expand(schedule)[0] == [[15], [2], ["*"], ["*"], ["*"]]
    assert "%" not in line  # cron would end the line there
    assert re.search(r"/nightly\.(sh|sbatch)\b", line)


def test_cronjob__has_the_same_schedule():
    spec = yaml.safe_load((DEPLOY / "kubernetes" / "cronjob.yaml").read_text("utf-8"))["spec"]
    assert croniter.is_valid(spec["schedule"])


@pytest.fixture
def units(tmp_path):
    """The units, with programs that are here in the place of those they start."""
    for path in UNITS:
        text = path.read_text("utf-8")
        for program in ("/opt/bigkd/bin/bigkd", "/etc/bigkd/alert"):
            text = text.replace(program, "/bin/true")
        (tmp_path / path.name).write_text(text)
    return tmp_path


def test_units__are_right(units):
    analyze = require_tool("systemd-analyze")
    files = [units / path.name for path in UNITS]
    done = sh(analyze, "verify", "--man=no", *files)
    assert (done.returncode, done.stderr) == (0, "")
    service = units / "bigkd-nightly.service"
    done = sh(analyze, "security", "--offline=true", "--threshold=25", service)
    assert done.returncode == 0, done.stdout[-200:]
    (calendar,) = re.findall("OnCalendar=(.*)", (units / "bigkd-nightly.timer").read_text())
    done = sh(analyze, "calendar", calendar)
    assert "Normalized form: *-*-* 02:15:00" in done.stdout
    service.write_text(service.read_text().replace("KillMode=mixed", "KillMode=perhaps"))
    assert "Failed to parse" in sh(analyze, "verify", "--man=no", service).stderr


def test_service__treats_exit_codes_as_the_page_says():
    text = (DEPLOY / "systemd" / "bigkd-nightly.service").read_text("utf-8")
    assert re.findall("^SuccessExitStatus=(.*)", text, re.M) == ["75"]
    assert re.findall("^RestartForceExitStatus=(.*)", text, re.M) == ["5"]
    assert "OnFailure=bigkd-alert@" in text


@pytest.mark.parametrize(("code", "subject"), [("3", "differs"), ("4", "failed with exit code 4")])
def test_alert__says_what_happened(code, subject, tmp_path):
    stub(tmp_path / "journalctl", "echo the last lines")
    stub(tmp_path / "mail", f'echo "$@" >{tmp_path}/sent; cat >>{tmp_path}/sent')
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = {"PATH": path, "MONITOR_EXIT_STATUS": code, "BIGKD_ALERT_TO": "me"}
    done = sh(DEPLOY / "systemd" / "alert", "bigkd-nightly.service", env=environment)
    assert done.returncode == 0, done.stderr
    sent = (tmp_path / "sent").read_text()
    assert subject in sent
    assert "nightly.html" in sent
    assert "the last lines" in sent


@pytest.mark.parametrize(
    ("codes", "code", "said"),
    [
        ([0], 0, ""),
        ([75], 75, ""),
        ([3], 3, "Tonight differs from the reference"),
        ([4], 4, "failed with exit code 4"),
        ([5, 0], 0, ""),
        ([5, 5, 5], 5, "failed with exit code 5"),
    ],
)
def test_nightly_script__speaks_only_where_somebody_has_to_look(codes, code, said, tmp_path):
    shutil.copy(DEPLOY / "laptop" / "nightly.sh", tmp_path)
    (tmp_path / "codes").write_text("\n".join(map(str, codes)))
    next_code = "code=$(head -n 1 codes); sed -i 1d codes; echo told; exit $code"
    stub(tmp_path / ".venv" / "bin" / "bigkd", f'echo "$@" >>called; {next_code}')
    environment = {**os.environ, "NIGHTLY_PAUSE": "0"}
    done = sh(tmp_path / "nightly.sh", cwd="/", env=environment)
    assert done.returncode == code
    assert (said in done.stdout) if said else not done.stdout
    assert ("told" in done.stdout) is bool(said)
    assert done.stderr == ""
    called = (tmp_path / "called").read_text().splitlines()
    assert called == ["run nightly.yaml"] * len(codes)
    assert (tmp_path / "nightly.log").read_text().count("told") == len(codes)


@pytest.mark.parametrize(
    ("code", "restarts", "ends", "requeued"),
    [(0, 0, 0, False), (3, 0, 3, False), (5, 0, 0, True), (130, 2, 0, True), (5, 3, 5, False),
     (75, 0, 0, False)],
)  # fmt: skip
def test_batch_script__requeues_what_goes_on(code, restarts, ends, requeued, tmp_path):
    stub(tmp_path / "bin" / "bigkd", f"exit {code}")
    stub(tmp_path / "bin" / "scontrol", f'echo "$@" >{tmp_path}/requeued')
    environment = {
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "NIGHTLY": str(tmp_path),
        "BIGKD_BIN": f"{tmp_path}/bin", "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": str(restarts),
    }  # fmt: skip
    done = sh("bash", DEPLOY / "slurm" / "nightly.sbatch", env=environment)
    assert done.returncode == ends, done.stderr
    assert f"job 7, exit code {code}" in done.stdout
    assert (tmp_path / "requeued").exists() is requeued
    if requeued:
        assert (tmp_path / "requeued").read_text() == "requeue 7\n"


def test_batch_script__passes_sigterm_on(tmp_path):
    body = "trap 'kill $!; exit 130' TERM; touch began; sleep 60 & wait"
    stub(tmp_path / "bin" / "bigkd", body)
    stub(tmp_path / "bin" / "scontrol", f"touch {tmp_path}/requeued")
    process = subprocess.Popen(
        ["bash", str(DEPLOY / "slurm" / "nightly.sbatch")],
        env={
            "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "NIGHTLY": str(tmp_path),
            "BIGKD_BIN": f"{tmp_path}/bin", "SLURM_JOB_ID": "7",
        },
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for(lambda: (tmp_path / "began").exists() and catches(process.pid, signal.SIGTERM))
    send([process.pid], signal.SIGTERM)
    assert process.wait(60) == 0
    assert (tmp_path / "requeued").exists()


def catches(pid, number):
    """Whether a process has a handler for a signal; elsewhere than on Linux nobody knows."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return True
    (caught,) = re.findall(r"^SigCgt:\s*(\w+)", status.read_text(), re.M)
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_cluster_scripts__show_nothing_without_tls_to_others():
    for name in ("scheduler.sh", "worker.sh"):
        text = (DEPLOY / "cluster" / name).read_text("utf-8")
        assert "--no-dashboard --dashboard-address 127.0.0.1:0 " in text  # Dask's own web pages


def test_batch_script__is_taken_by_slurm(tmp_path):
    script = (DEPLOY / "slurm" / "nightly.sbatch").read_text("utf-8")
    script = script.replace("--partition=normal", "--partition=test")
    (tmp_path / "nightly.sbatch").write_text(script.replace("/shared/nightly", str(tmp_path)))
    with running_slurm(tmp_path):
        stub(tmp_path / "bin" / "bigkd", "exit 3")
        environment = {"NIGHTLY": str(tmp_path), "BIGKD_BIN": f"{tmp_path}/bin"}
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            done = sh(require_tool("sbatch"), "--wait", tmp_path / "nightly.sbatch")
        assert done.returncode == 3, done.stderr
        assert "exit code 3" in (tmp_path / "nightly.log").read_text()
        wait_until_empty()


@pytest.mark.cluster
def test_cluster_page__works_from_certificates_to_report(tmp_path):
    require_tool("openssl")
    for name in ("make_certificates.sh", "scheduler.sh", "worker.sh", "nightly.yaml"):
        shutil.copy(DEPLOY / "cluster" / name, tmp_path)
    generator = np.random.default_rng(0)
    for name in ("tonight", "reference"):
        np.save(tmp_path / f"{name}.npy", generator.normal(size=(300, 4)))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = sh("./make_certificates.sh", "tls", cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert {path.stat().st_mode & 0o77 for path in (tmp_path / "tls").iterdir()} == {0}
    again = sh("./make_certificates.sh", "tls", cwd=tmp_path, env=environment)
    assert (again.returncode, "exists already" in again.stderr) == (1, True)

    started = []

    def start(*command):
        log = (tmp_path / f"{Path(command[0]).stem}.log").open("w")
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        started.append((process, log))

    (port,) = free_ports(1)
    try:
        start("./scheduler.sh", str(port), "tls")
        start("./worker.sh", f"tls://127.0.0.1:{port}", "2", "tls")
        job = yaml.safe_load((tmp_path / "nightly.yaml").read_text())
        job["cluster"]["address"] = f"tls://127.0.0.1:{port}"
        job["data"] = {name: f"{name}.npy" for name in job["data"]}
        job["output"] = {name: Path(path).name for name, path in job["output"].items()}
        job["comparisons"] = {"drift": job["comparisons"]["drift"]}  # modes take longer
        (tmp_path / "nightly.yaml").write_text(yaml.safe_dump(job))
        done = sh("bigkd", "run", "nightly.yaml", "--json", cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)
    finally:
        for process, log in started:
            send([process.pid], signal.SIGTERM)
            process.wait(60)
            log.close()
    assert "<html" in (tmp_path / "nightly.html").read_text()
    assert xr.open_zarr(tmp_path / "history.zarr").sizes["run"] == 1

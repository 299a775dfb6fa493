"""A real SLURM on this machine: Debian's packages, two pretended nodes, all of it in one private folder.

Everything runs as the present user; root is needed for apt alone, and only where a program is missing. Every process
that the lab starts, and every one that these start, carries the lab's folder in its environment: by that mark they are
found and ended, also those that killed tests left behind, and nothing else ever is.
"""

import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
MARK = "DPVISION_LAB"
PACKAGES = {  # program -> Debian's package
    "munged": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "slurmdbd": "slurmdbd",
    "mariadbd": "mariadb-server-core",
    "mariadb": "mariadb-client-core",
}
COMMANDS = ("sacct", "sacctmgr", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun", "sshare")
CPUS = 4  # of each node: more than the machine may have, so that waiting jobs do not hold up one another
POLICY = Path("/usr/sbin/policy-rc.d")


class Unavailable(Exception):
    """An error that says why there can be no SLURM here."""


def program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def wait_for(what: str, condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:.0f} s in vain: {what}"
        time.sleep(0.2)


def within(folder: Path) -> list[int]:
    """List the processes that work in the folder or have a file of it open: slurmstepd clears its environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            places = [os.readlink(link) for link in [process / "cwd", *(process / "fd").iterdir()]]
            if any(place.startswith(f"{folder}/") for place in places):
                found.append(int(process.name))
    return found


def marked(mark: str) -> list[int]:
    """List the processes that were started with this mark in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # ended meanwhile, or another user's
            if mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


@contextmanager
def running() -> Iterator["Lab"]:
    """Run a cluster while this lasts. Its folder is the clone's own: what an earlier run left there is ended first."""
    folder = Path(tempfile.gettempdir()) / f"dpvision-lab-{sha256(str(ROOT).encode()).hexdigest()[:8]}"
    folder.mkdir(mode=0o755, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable("another run of these tests has the cluster of this folder") from None
        lab = Lab(folder)
        lab.end_all()
        shutil.rmtree(folder)
        try:
            lab.start()
            yield lab
        finally:
            lab.stop()


class Lab:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = pwd.getpwuid(os.geteuid()).pw_name
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            **os.environ,
            MARK: str(folder),
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "SLURM_CONF": f"{folder}/etc/slurm.conf",
        }

    def start(self) -> None:
        install()
        for part in ("bin", "etc", "run", "log", "state", "database", "node1", "node2"):
            (self.folder / part).mkdir(parents=True)
        self._write_configuration()
        self._write_commands()
        self._start_munge()
        self._start_database()
        self.start_accounting()
        wait_for("accounting", lambda: self.succeeds("sacctmgr", "-n", "list", "cluster"))
        self.run("sacctmgr", "-i", "add", "cluster", "lab")
        self.run("sacctmgr", "-i", "add", "account", "lab")
        self.run("sacctmgr", "-i", "add", "user", self.user, "account=lab")
        self._daemon("slurmctld", "-D")
        for node in ("node1", "node2"):
            self._daemon("slurmd", "-D", "-N", node, name=node)
        wait_for("the nodes", lambda: self.run("sinfo", "-h", "-p", "main", "-t", "idle", "-o", "%D").strip() == "2")

    def start_accounting(self) -> None:
        self._daemon("slurmdbd", "-D")

    def stop_accounting(self) -> None:
        self.end("slurmdbd")

    def stop(self) -> None:
        """Stop the jobs, where the controller answers, then the daemons, the last started first."""
        with suppress(subprocess.SubprocessError, AssertionError):
            self.run("scancel", "--user", self.user, timeout=20)
            wait_for("the queue to empty", lambda: not self.run("squeue", "-h", timeout=20), 20)
        for name in reversed(list(self.daemons)):
            self.end(name)
        self.end_all()
        shutil.rmtree(self.folder / "database", ignore_errors=True)  # large; the logs stay

    def end(self, name: str) -> None:
        daemon = self.daemons.pop(name)
        daemon.terminate()
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def end_all(self) -> None:
        """End every process that still carries the mark or works here."""
        for process in {*marked(f"{MARK}={self.folder}"), *within(self.folder)} - {os.getpid()}:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def run(self, *command: str, timeout: float = 60) -> str:
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=timeout)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def succeeds(self, *command: str) -> bool:
        return subprocess.run(command, env=self.environment, capture_output=True).returncode == 0

    def _daemon(self, *command: str, name: str | None = None) -> None:
        """Start a daemon in a session of its own. Ctrl-C is then for the tests alone, and they stop it in order."""
        name = name or command[0]
        with open(self.folder / "log" / f"{name}.txt", "a") as log:
            self.daemons[name] = subprocess.Popen(
                [program(command[0]) or command[0], *command[1:]],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _start_munge(self) -> None:
        key = self.folder / "etc/munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(1024))
        files = {"key-file": key, "socket": self.socket, "pid-file": self.folder / "run/munged.pid"}
        files |= {"log-file": self.folder / "log/munged.log", "seed-file": self.folder / "state/munged.seed"}
        self._daemon("munged", "--foreground", *(f"--{option}={file}" for option, file in files.items()))
        wait_for("munge", self.socket.exists)

    def _start_database(self) -> None:
        data = [f"--datadir={self.folder}/database", f"--user={self.user}", "--skip-name-resolve"]
        self.run("mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", *data)
        door = f"--socket={self.folder}/run/database"
        sizes = ["--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M", "--innodb-lock-wait-timeout=900"]
        where = [door, f"--pid-file={self.folder}/run/mariadbd.pid", "--bind-address=127.0.0.1", f"--port={self.ports['sql']}"]
        self._daemon("mariadbd", "--no-defaults", *data, *where, *sizes)
        client = ("mariadb", "--no-defaults", "--user=root", door, "--execute")
        wait_for("the database", lambda: self.succeeds(*client, "select 1"))
        self.run(*client, "create database slurm; create user slurm@127.0.0.1; grant all on slurm.* to slurm@127.0.0.1")

    def _write_commands(self) -> None:
        """Write SLURM's commands with the way to this cluster. A job's inner srun is given no SLURM_CONF."""
        for name in COMMANDS:
            file = self.folder / "bin" / name
            file.write_text(f'#!/bin/sh\nSLURM_CONF={self.folder}/etc/slurm.conf exec {program(name)} "$@"\n')
            file.chmod(0o755)

    def _write_configuration(self) -> None:
        names = ("slurmctld", "slurmdbd", "sql", "node1", "node2")
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.socket = self.folder / "run/munge"
        host = socket.gethostname().partition(".")[0]
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 * 4 // 10
        (self.folder / "etc/slurm.conf").write_text(
            SLURM.format(
                host=host, user=self.user, folder=self.folder, cpus=CPUS, memory=memory, socket=self.socket, **self.ports
            )
        )
        # two devices that every machine has: what a GPU is to SLURM is a device's file
        devices = "".join(f"NodeName=node[1-2] Name=gpu Type=fake File=/dev/{device}\n" for device in ("null", "zero"))
        (self.folder / "etc/gres.conf").write_text(devices)
        accounting = self.folder / "etc/slurmdbd.conf"
        accounting.touch(0o600)
        accounting.write_text(SLURMDBD.format(user=self.user, folder=self.folder, socket=self.socket, **self.ports))


def free_ports(number: int) -> list[int]:
    """Find ports that nobody listens on. All are taken before one is given back, so that they differ."""
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [door.getsockname()[1] for door in doors]
    for door in doors:
        door.close()
    return ports


def install() -> None:
    """Install the missing programs by apt, without starting any service."""
    missing = [package for name, package in PACKAGES.items() if not program(name)]
    if not missing:
        return
    wanted = " ".join(missing)
    if not shutil.which("apt-get"):
        raise Unavailable(f"{wanted} missing, and there is no apt-get to install it with")
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if root and subprocess.run([*root, "true"], capture_output=True).returncode:
        raise Unavailable(f"{wanted} missing, and neither root nor sudo without a password to install it with")
    # what Debian asks before a package may start its services; 101 is no
    no = f"printf '#!/bin/sh\\nexit 101\\n' > {POLICY}; chmod 755 {POLICY}; trap 'rm {POLICY}' EXIT"
    apt = "apt-get -q -o DPkg::Lock::Timeout=300"
    get = f"{apt} update && DEBIAN_FRONTEND=noninteractive {apt} install -y --no-install-recommends {wanted}"
    done = subprocess.run(
        [*root, "sh", "-c", f"test -e {POLICY} || {{ {no}; }}; {get}"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise Unavailable(f"apt-get could not install {wanted}: {done.stderr.strip()[-500:]}")


SLURM = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={slurmctld}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
# a requeued job waits until its credential has expired
AuthInfo=socket={socket},cred_expire=10
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/%n.log
MailProg=/bin/true
# no cgroups: processes are followed through /proc
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SchedulerParameters=sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={slurmdbd}
AccountingStoragePass={socket}
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations
AccountingStoreFlags=job_comment
DefMemPerCPU=500
EnforcePartLimits=ALL
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={node1} CPUs={cpus} RealMemory={memory} Gres=gpu:fake:2
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={node2} CPUs={cpus} RealMemory={memory} Gres=gpu:fake:2
PartitionName=main Nodes=ALL Default=YES DefaultTime=60 MaxTime=1-0 PriorityTier=10 PreemptMode=OFF
PartitionName=spare Nodes=ALL DefaultTime=60 MaxTime=1-0 PriorityTier=1 PreemptMode=REQUEUE
"""
SLURMDBD = """\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={slurmdbd}
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={socket}
PidFile={folder}/run/slurmdbd.pid
LogFile={folder}/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql}
StorageUser=slurm
StorageLoc=slurm
"""

"""What other people wrote for kernels, with kernels in pods of their own: nbclient, and Jupyter's tests of a kernel.

jupyter_client's own tests come with its source and not with the package; `tests/README.md` says how to run them.
"""

import subprocess
import sys
import textwrap

import jupyter_kernel_test
import nbclient
import nbformat
import pytest
from kernel_site import KernelSite
from world import eventually


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with KernelSite(tmp_path_factory.mktemp("kernels")).running() as site:
        yield site


@pytest.fixture
def in_lab(site, monkeypatch):
    """This process is the lab's Jupyter server."""
    for name, value in site.environment().items():
        monkeypatch.setenv(name, value)
    package = site.environment()["PYTHONPATH"].split(":")
    monkeypatch.setattr(sys, "path", [*package, *sys.path])
    yield site
    eventually(lambda: site.kernels() == [], what="every kernel was shut down")


def test_nbclient_executes_a_notebook(in_lab):
    cells = ["import os", "print(os.environ['POD_IP'])", "1 / 0"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, kernel_name="python3", allow_errors=True, timeout=60, iopub_timeout=60)
    client.execute()
    assert notebook.cells[1].outputs[0]["text"].startswith("127.")
    assert notebook.cells[2].outputs[0]["ename"] == "ZeroDivisionError"


def test_jupyter_s_tests_of_a_kernel(site, tmp_path):
    """Its cases are those of unittest, with one kernel for all; they run where the lab's Jupyter server would."""
    assert jupyter_kernel_test.KernelTests
    cases = tmp_path / "cases.py"
    cases.write_text(
        textwrap.dedent(
            """
            import jupyter_kernel_test

            class PythonKernelTests(jupyter_kernel_test.KernelTests):
                kernel_name = "python3"
                language_name = "python"
                file_extension = ".py"
                code_hello_world = "print('hello, world')"
                code_stderr = "import sys; print('test', file=sys.stderr)"
                completion_samples = [{"text": "zi", "matches": {"zip"}}]
                complete_code_samples = ["1", "print('hello')"]
                incomplete_code_samples = ["def f(x):"]
                invalid_code_samples = ["import = 7q"]
                code_page_something = "zip?"
                code_generate_error = "raise ValueError"
                code_execute_result = [{"code": "1+2+3", "result": "6"}]
                code_display_data = [
                    {"code": "from IPython.display import HTML, display; display(HTML('<b>x</b>'))", "mime": "text/html"}
                ]
                supported_history_operations = ("tail", "search")

                @classmethod
                def setUpClass(cls):
                    # What a kernel sends may be late on a busy machine; the cases wait a tenth of a second.
                    super().setUpClass()
                    receive = jupyter_kernel_test.ensure_sync(cls.kc.iopub_channel.get_msg)
                    cls.kc.iopub_channel.get_msg = lambda timeout: receive(timeout=60)

                def flush_channels(self):
                    # The answers to one more request come after all others.
                    request = self.kc.kernel_info()
                    while self.kc.get_shell_msg(timeout=60)["parent_header"]["msg_id"] != request:
                        pass
                    ended = (request, {"execution_state": "idle"})
                    message = {"parent_header": {}, "content": {}}
                    while (message["parent_header"].get("msg_id"), message["content"]) != ended:
                        message = self.kc.iopub_channel.get_msg(timeout=60)
            """
        )
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", str(cases)]
    ended = subprocess.run(
        command, cwd=tmp_path, env=site.environment(), stdout=subprocess.PIPE, text=True, timeout=180
    )
    assert ended.returncode == 0, ended.stdout[-3000:]
    eventually(lambda: site.kernels() == [], what="every kernel was shut down")

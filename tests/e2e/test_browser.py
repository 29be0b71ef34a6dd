"""The same in a browser: the form works, the progress bar moves, the lab opens and runs code. Keeps screenshots."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from jupyter_lab import JupyterLab
from local_registry import registry_or_skip
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from world import World, eventually

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no browser: Debian's packages are chromium and chromium-driver"
)


@pytest.fixture(scope="session")
def screenshots():
    """The folder for screenshots, outside the clone."""
    folder = Path(os.environ.get("SCREENSHOTS") or Path(tempfile.gettempdir()) / "wasmspawner-screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def browser(request, screenshots):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    # No sandbox, because the tests may run as root in a container and open only local pages.
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1280,1000",
    ):
        options.add_argument(argument)
    if getattr(request, "param", "light") == "dark":
        options.add_argument("--blink-settings=preferredColorScheme=0")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.save_screenshot(str(screenshots / f"{request.node.name}-end.png"))
    driver.quit()


def wait(driver, seconds, condition):
    return WebDriverWait(driver, seconds, poll_frequency=0.1).until(condition)


def log_in(driver, world, name):
    world.take_user(name)
    driver.get(f"{world.url}/hub/login")
    driver.find_element(By.ID, "username_input").send_keys(name)
    driver.find_element(By.ID, "password_input").send_keys(world.password)
    driver.find_element(By.ID, "login_submit").click()
    wait(driver, 60, lambda d: "/hub/spawn" in d.current_url)
    wait(driver, 60, lambda d: d.find_elements(By.ID, "spawn_form"))


def start(driver):
    """Press the button; the page scrolls smoothly, and a driver does not wait for that."""
    button = driver.find_element(By.CSS_SELECTOR, "#spawn_form button[type=submit]")
    driver.execute_script("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", button)
    button.click()


def outputs(driver):
    return driver.find_elements(By.CSS_SELECTOR, ".jp-OutputArea-output")


def run_cell(driver, kernel, code, expected):
    """Open a notebook with the kernel whose card has this text, run one cell, and wait for its output."""

    def cards(page):
        found = page.find_elements(By.CSS_SELECTOR, ".jp-LauncherCard[data-category=Notebook]")
        return [card for card in found if kernel in card.text]

    wait(driver, 60, cards)[0].click()
    wait(driver, 60, lambda page: "| Idle" in page.find_element(By.CSS_SELECTOR, "#jp-main-statusbar").text)
    # The cell's element is replaced while the notebook loads: click it, then type into the focused element.
    driver.execute_script("document.querySelector('.jp-Notebook .cm-content').focus()")
    ActionChains(driver).send_keys(code).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()
    wait(driver, 60, lambda page: any(expected in out.text for out in outputs(page)))


def test_from_login_to_a_running_cell(world, browser, screenshots):
    log_in(browser, world, "ada.byron@example.org")
    form = browser.find_element(By.ID, "spawn_form")
    browser.save_screenshot(str(screenshots / "form.png"))
    # Every field has a label for screen readers, and a click on the label's text works.
    for control in form.find_elements(By.CSS_SELECTOR, "input:not([type=hidden]), select, textarea"):
        assert browser.execute_script("return arguments[0].labels.length", control) > 0, control.get_attribute("name")
    medium = form.find_element(By.CSS_SELECTOR, "input[name=size][value=medium]")
    browser.execute_script("arguments[0].labels[0].click()", medium)
    assert medium.is_selected()
    start(browser)

    wait(browser, 60, lambda d: "/spawn-pending/" in d.current_url)
    seen, messages = set(), []

    def moved(driver):
        if "/spawn-pending/" in driver.current_url:
            value = driver.execute_script(
                "return document.getElementById('progress-bar')?.getAttribute('aria-valuenow')"
            )
            shown = driver.execute_script(
                "return [...document.querySelectorAll('.progress-log-event')].flatMap(e => e.innerHTML.split('<br>'))"
            )
            messages[:] = max(messages, shown, key=len)
            if value and value not in seen:
                seen.add(value)
                driver.save_screenshot(str(screenshots / f"progress-{int(value):03}.png"))
        return "/lab" in driver.current_url

    wait(browser, 90, moved)
    # A quick lab may be half started when the browser shows the page; how the bar moves is a test of `test_hub.py`.
    assert seen, "the bar was not shown"
    assert len(set(messages)) >= 4, f"the stages were not shown: {messages}"
    wait(browser, 60, lambda d: d.find_elements(By.CSS_SELECTOR, ".jp-LauncherCard"))

    # A kernel answers, so web sockets pass through the proxy in both directions.
    run_cell(browser, "Python 3", "6 * 7", "42")
    browser.save_screenshot(str(screenshots / "lab.png"))


def test_the_last_choices_are_selected_on_the_page(world, browser, screenshots):
    log_in(browser, world, "caroline")
    medium = browser.find_element(By.CSS_SELECTOR, "#spawn_form input[name=size][value=medium]")
    browser.execute_script("arguments[0].labels[0].click()", medium)
    browser.find_element(By.CSS_SELECTOR, "select[name=image] option[value=scipy]").click()
    start(browser)
    wait(browser, 90, lambda page: "/lab" in page.current_url)
    world.hub_api("DELETE", "/users/caroline/server")
    eventually(lambda: not world.servers("caroline"), what="the Hub's server is gone")
    browser.get(f"{world.url}/hub/spawn/caroline")
    form = wait(browser, 60, lambda page: page.find_element(By.ID, "spawn_form"))
    assert form.find_element(By.CSS_SELECTOR, "input[name=size][value=medium]").is_selected()
    assert form.find_element(By.CSS_SELECTOR, "select[name=image] option[value=scipy]").is_selected()
    browser.save_screenshot(str(screenshots / "form-again.png"))


def test_a_cell_runs_in_a_kernel_with_a_pod_of_its_own(world, browser, screenshots):
    log_in(browser, world, "sofia")
    start(browser)
    wait(browser, 90, lambda page: "/lab" in page.current_url)
    run_cell(browser, "pod of its own", "import os; os.environ['POD_IP'] + ' answers'", " answers")
    shown = next(out.text for out in outputs(browser) if " answers" in out.text)
    [kernel] = world.kernels("sofia")
    assert kernel["connection"]["ip"] in shown
    assert kernel["connection"]["ip"] not in world.lab("sofia")["url"], "it has another address than its lab"
    browser.save_screenshot(str(screenshots / "own-pod.png"))


@pytest.mark.parametrize("browser", ["dark"], indirect=True)
def test_the_form_is_readable_in_dark_mode_and_on_a_phone(world, browser, screenshots):
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    log_in(browser, world, "lise")
    browser.execute_script("document.documentElement.setAttribute('data-bs-theme', 'dark')")
    # Colours change gradually.
    faded = "return document.getAnimations().every(animation => animation.playState !== 'running')"
    wait(browser, 30, lambda page: page.execute_script(faded))
    browser.save_screenshot(str(screenshots / "form-dark.png"))
    browser.set_window_size(400, 900)
    browser.save_screenshot(str(screenshots / "form-phone.png"))
    wide = browser.execute_script("return document.querySelector('#spawn_form').scrollWidth - window.innerWidth")
    assert wide <= 0, "the form is wider than a phone"


def test_the_page_of_a_failed_lab_says_why(world, browser, screenshots):
    log_in(browser, world, "lillian")
    broken = browser.find_element(By.CSS_SELECTOR, "select[name=image] option[value=broken]")
    broken.click()
    start(browser)
    wait(browser, 90, lambda d: d.find_elements(By.CSS_SELECTOR, "#progress-bar.bg-danger, .spawn-error-msg"))
    browser.save_screenshot(str(screenshots / "failed.png"))
    message = browser.find_element(By.CSS_SELECTOR, "#progress-message, .spawn-error-msg").text
    assert "exit code 3" in message


def test_the_dashboard_of_a_dask_pool_draws_its_plots(world, browser, screenshots):
    log_in(browser, world, "mary.jackson")
    start(browser)
    wait(browser, 90, lambda page: "/lab" in page.current_url)
    jupyter = JupyterLab(world, "mary.jackson")
    kernel = jupyter.start_kernel("python3")
    begun = "from wasmspawner.dask import WasmSpawnerCluster\npool = WasmSpawnerCluster(n_workers=1, quiet=True)\n"
    link = jupyter.run(kernel, f"{begun}print(pool.dashboard_link)").strip()
    assert link.startswith("/user/mary.jackson/proxy/"), link
    browser.get(f"{world.url}{link}")
    # The documents come through a web socket, by way of the Hub's proxy and the lab.
    drawn = "return Boolean(window.Bokeh && window.Bokeh.documents.some(each => each.is_idle))"
    wait(browser, 60, lambda page: page.execute_script(drawn))
    browser.save_screenshot(str(screenshots / "dask-dashboard.png"))


@pytest.fixture
def world_with_a_registry(tmp_path):
    """A Hub whose labs' images are those of a registry. Their program is the same JupyterLab."""
    with registry_or_skip(tmp_path / "registry") as registry:
        for tag in ("2.0", "1.10", "1.9", *(f"1.{n}" for n in range(8))):
            registry.push_image("site/lab", tag, tag)
        state = tmp_path / "state"
        state.mkdir(mode=0o700)
        world = World.at(state)

        def adapt(config):
            config["policies"][0]["config"]["images"] = []
            config["registries"] = {"plain_http": [registry.address]}
            config["images"] = {"repositories": [{"name": f"{registry.address}/site/lab"}]}

        world.settings.adapt = adapt
        with world.running():
            yield world


def test_an_image_is_searched_and_its_lab_opens(world_with_a_registry, browser, screenshots):
    world = world_with_a_registry
    log_in(browser, world, "grace")
    form = browser.find_element(By.ID, "spawn_form")
    cards = form.find_elements(By.CSS_SELECTOR, "input[name=image]")
    assert [card.get_attribute("value") for card in cards] == ["2.0", "another image"]
    assert cards[0].is_selected()
    search = form.find_element(By.CSS_SELECTOR, "input[name=image_search]")
    assert not search.is_displayed()
    browser.execute_script("arguments[0].labels[0].click()", cards[1])
    wait(browser, 30, lambda _: search.is_displayed())
    offered = "return [...arguments[0].list.options].map(option => option.value)"
    assert browser.execute_script(offered, search)[:2] == ["1.10", "1.9"]
    search.send_keys("1.9")
    browser.save_screenshot(str(screenshots / "form-images.png"))
    start(browser)
    wait(browser, 90, lambda page: "/lab" in page.current_url)
    image = world.lab("grace")["image"]
    assert image["reference"].endswith("/site/lab:1.9")
    assert image["digest"].startswith("sha256:")


FIELD_VALUES = """
return arguments[0].map(({ field, value }) => {
  const input = document.createElement(field.kind === 'select' ? 'select' : 'input');
  for (const choice of field.choices ?? []) input.add(new Option(choice, choice));
  const attributes = {
    type: field.kind, value: field.default ?? (field.kind === 'number' ? 0 : ''), pattern: field.pattern,
    maxlength: field.maxLength, min: field.minimum, max: field.maximum, step: field.step ?? 'any',
  };
  for (const [name, text] of Object.entries(attributes)) if (text !== undefined) input.setAttribute(name, text);
  input.required = field.required ?? false;
  if (field.kind === 'checkbox') input.checked = [true, 'true', 'on'].includes(value);
  else if (value !== undefined) input.value = value;
  return input.validity.valid;
});
"""


def test_a_browser_agrees_about_values_of_fields(browser):
    """What the SDKs accept and refuse is what a browser lets a user submit."""
    table = json.loads((Path(__file__).parents[1] / "tables/form-fields.json").read_text())
    # A page's radio buttons have only values that are offered, and a text of the API can be no text.
    rows = [
        row
        for row in table["values"]
        if "browser" not in row and row["field"]["kind"] != "radio" and isinstance(row.get("value", ""), str)
    ]
    assert len(rows) > 50
    browser.get("about:blank")
    valid = browser.execute_script(FIELD_VALUES, rows)
    assert [row for row, is_valid in zip(rows, valid, strict=True) if is_valid == ("problem" in row)] == []
    # What is accepted compiles in a browser; one that it cannot read would be ignored.
    patterns = [
        row["field"]["pattern"] for row in table["fields"] if "problem" not in row and "pattern" in row["field"]
    ]
    assert len(patterns) > 5
    browser.execute_script("arguments[0].forEach((pattern) => new RegExp(`^(?:${pattern})$`, 'v'))", patterns)

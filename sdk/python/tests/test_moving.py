import pytest
from jupyterhub import orm
from jupyterhub.objects import Hub
from jupyterhub.spawner import SimpleLocalProcessSpawner
from jupyterhub.user import User
from traitlets import TraitError
from traitlets.config import Config

from wasmspawner import WasmSpawner
from wasmspawner.moving import MovingSpawner

GROUPS = {"ada": "staff", "grace": "students"}


@pytest.fixture(scope="module")
def database():
    session = orm.new_session_factory("sqlite:///:memory:")()
    for name, group in GROUPS.items():
        session.add(orm.User(name=name, groups=[orm.Group(name=group)]))
    session.commit()
    yield session
    session.close()


@pytest.fixture
def users(database):
    """Users of JupyterHub by name, without servers, with other settings of the spawner."""

    def made(name, **settings):
        settings = {"former_class": SimpleLocalProcessSpawner, "groups": {"staff"}} | settings
        hub = {"spawner_class": MovingSpawner, "config": Config({"MovingSpawner": settings}), "hub": Hub()}
        return User(orm.User.find(database, name), hub)

    yield made
    database.query(orm.Spawner).delete()
    database.commit()


def spawner(user, name=""):
    """The spawner that the Hub makes for a server."""
    if name not in user.orm_spawners:
        user.db.add(orm.Spawner(name=name, user=user.orm_user))
        user.db.commit()
    return user._new_spawner(name)


def test_users_of_a_group_have_moved_and_others_have_not(users):
    ada, grace = spawner(users("ada")), spawner(users("grace"))
    assert (type(ada), type(grace)) == (WasmSpawner, SimpleLocalProcessSpawner)
    assert (ada.user.name, grace.user.name) == ("ada", "grace"), "each has its own settings"


def test_a_named_server_has_moved_for_everybody(users):
    grace = users("grace", groups=set(), server_names={"new"})
    assert type(spawner(grace, "new")) is WasmSpawner
    assert type(spawner(grace, "old")) is SimpleLocalProcessSpawner
    assert type(spawner(grace)) is SimpleLocalProcessSpawner
    assert type(spawner(users("grace", server_names={""}))) is WasmSpawner


def test_nobody_has_moved_without_settings(users):
    assert type(spawner(users("ada", groups=set()))) is SimpleLocalProcessSpawner


def test_a_server_that_runs_keeps_its_spawner_when_the_hub_starts_again(users):
    moved, back = users("ada"), users("ada", groups=set())
    server = spawner(moved).orm_spawner
    server.state = {"user": "ada", "server": ""}
    server.server = orm.Server(proto="http", ip="10.0.0.1", port=8888, base_url="/", cookie_name="c")
    assert type(spawner(back)) is WasmSpawner
    server.state = {"last_options": {"size": "small"}}
    server.server = None
    assert type(spawner(back)) is SimpleLocalProcessSpawner, "it has stopped"
    server.state = {"pod_name": "jupyter-ada"}
    assert type(spawner(moved)) is WasmSpawner
    server.server = orm.Server(proto="http", ip="10.0.0.1", port=8888, base_url="/", cookie_name="c")
    assert type(spawner(moved)) is SimpleLocalProcessSpawner


def test_a_lab_that_is_asked_for_when_the_hub_ends_keeps_its_spawner(users):
    server = spawner(users("ada")).orm_spawner
    server.state = spawner(users("ada")).get_state() | {"user": "ada", "server": ""}
    assert type(spawner(users("ada", groups=set()))) is WasmSpawner


@pytest.mark.parametrize("settings", [{"former_class": dict}, {"groups": 1}])
def test_settings_of_another_type_are_refused(users, settings):
    with pytest.raises(TraitError):
        spawner(users("ada", **settings))


def test_settings_of_each_class_are_its_own():
    config = Config({"MovingSpawner": {"groups": {"staff"}}, "WasmSpawner": {"stop_timeout": 7}})
    config.MovingSpawner.former_class = SimpleLocalProcessSpawner
    config.SimpleLocalProcessSpawner.home_dir_template = "/homes/{username}"
    assert MovingSpawner(config=config).home_dir_template == "/homes/{username}"


def test_the_claim_that_kubespawner_remembers_is_known_to_it_when_a_user_goes_back(users):
    ada = spawner(users("ada"))
    remembered = {"pvc_name": "claim-ada-2dlovelace", "kubespawner_version": "7.1.0"}
    ada.load_state(remembered | {"pod_name": "jupyter-ada"})
    ada._own_lab, ada._last_status = ada._lab, None
    assert ada.get_state() == remembered | {"user": "ada", "server": ""}
    ada._last_status = 0
    ada.clear_state()
    assert ada.get_state() == remembered


def test_a_lab_that_could_not_be_stopped_keeps_its_spawner(users):
    """Its claim would be wanted twice, by a lab of each spawner."""
    user = users("ada")
    ada = spawner(user)
    ada._own_lab, ada._last_status = ada._lab, None  # as after a start
    ada.clear_state()  # as JupyterHub does after a stop that failed, too
    ada.orm_spawner.state = ada.get_state()
    user.db.commit()
    assert type(spawner(users("ada", groups=set()))) is WasmSpawner
    ada._last_status = 0  # as after a stop
    ada.clear_state()
    ada.orm_spawner.state = ada.get_state()
    user.db.commit()
    assert type(spawner(users("ada", groups=set()))) is SimpleLocalProcessSpawner

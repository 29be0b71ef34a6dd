"""The Hub of the tests, behind Gafaelfawr: NGINX says who a visitor is, and gives the visitor's token for notebooks."""

import os

from jupyterhub.auth import Authenticator
from jupyterhub.handlers import BaseHandler
from jupyterhub.utils import url_path_join

c = get_config()  # noqa: F821
load_subconfig(os.environ["TEST_HUB_CONFIG"])  # noqa: F821


def visitor(headers):
    return {
        "name": headers["X-Auth-Request-User"],
        "auth_state": {"token": headers["X-Auth-Request-Token"]},
    }


class LogIn(BaseHandler):
    """Logs the visitor in whom NGINX names."""

    async def get(self):
        user = await self.auth_to_user(visitor(self.request.headers))
        self.set_login_cookie(user)
        self.redirect(self.get_next_url(user))


class OfIngress(Authenticator):
    """Believes the headers of the ingress, and takes over a newer token before each start of a lab."""

    auto_login = True
    refresh_pre_spawn = True

    def get_handlers(self, app):
        return [("/ingress/login", LogIn)]

    def login_url(self, base_url):
        return url_path_join(base_url, "ingress/login")

    async def refresh_user(self, user, handler=None):
        headers = handler.request.headers if handler else {}
        return visitor(headers) if "X-Auth-Request-Token" in headers else True


c.JupyterHub.authenticator_class = OfIngress

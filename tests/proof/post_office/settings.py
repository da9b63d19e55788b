"""Settings of a Django project with post_office, which sends by django_ses, as their READMEs describe."""

import os
from urllib.parse import urlsplit

_database = urlsplit(os.environ["POSTGRES_URL"])
SECRET_KEY = "not used"
USE_TZ = True
INSTALLED_APPS = ["post_office"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _database.path.strip("/"),
        "USER": _database.username,
        "PASSWORD": _database.password,
        "HOST": _database.hostname,
        "PORT": _database.port,
    }
}
EMAIL_BACKEND = "post_office.EmailBackend"
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates"}]
POST_OFFICE = {"BACKENDS": {"default": "django_ses.SESBackend"}}
USE_SES_V2 = True
AWS_SES_REGION_NAME = "us-east-1"
AWS_SES_REGION_ENDPOINT_URL = os.environ["AWS_ENDPOINT_URL_SESV2"]

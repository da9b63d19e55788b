import subprocess


def test_each_template_renders_with_its_examples() -> None:
    subprocess.run(["mailroom", "template", "render", "--all"], check=True)

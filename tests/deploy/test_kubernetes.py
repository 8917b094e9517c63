"""The manifests and the chart: valid for the API, the same as each other, and true to the code."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from operator import itemgetter
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from laggard import __version__
from laggard.config import load_config
from laggard.config.sections import Config
from laggard.exporter.body.families import FAMILIES
from laggard.stream.job.query import STOP_SECONDS

ROOT = Path(__file__).parent.parent.parent
K8S = ROOT / "docker" / "k8s"
CHART = ROOT / "docker" / "helm" / "laggard"
OF_OPERATORS = (
    "monitoring.coreos.com/v1",
    "keda.sh/v1alpha1",
    "sparkoperator.k8s.io/v1beta2",
    "spark.apache.org/v1",
)
API = kubernetes_validate.latest_version()
Manifest = dict[str, Any]


def documents(text: str) -> list[Manifest]:
    return [each for each in yaml.safe_load_all(text) if each]


def base() -> list[Manifest]:
    """What `kubectl apply -k docker/k8s` would send, but for the namespace in each."""
    listed = yaml.safe_load((K8S / "kustomization.yaml").read_text())["resources"]
    return [each for name in listed for each in documents((K8S / name).read_text())]


def monitoring() -> list[Manifest]:
    return [
        each
        for name in ("monitor", "rules")
        for each in documents((K8S / "monitoring" / f"{name}.yaml").read_text())
    ]


def by_name(manifests: list[Manifest]) -> dict[tuple[str, str], Manifest]:
    found = {(each["kind"], each["metadata"]["name"]): each for each in manifests}
    assert len(found) == len(manifests)
    return found


def pod(name: str) -> Manifest:
    spec: Manifest = by_name(base())["Deployment", name]["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize(
    "manifest", base(), ids=lambda each: f"{each['kind']}-{each['metadata']['name']}"
)
def test_a_manifest_holds_to_the_schema_of_its_api(manifest: Manifest) -> None:
    kubernetes_validate.validate(manifest, API, strict=True)


def test_every_file_is_read_by_somebody() -> None:
    listed = yaml.safe_load((K8S / "kustomization.yaml").read_text())["resources"]
    assert {path.name for path in K8S.glob("*.yaml")} == {*listed, "kustomization.yaml"}


def test_the_schemas_find_a_wrong_key() -> None:
    manifest = by_name(base())["Deployment", "laggard-job"]
    manifest["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, API, strict=True)


@pytest.mark.parametrize(
    "path",
    [*sorted(K8S.glob("examples/*.yaml")), *sorted(K8S.glob("monitoring/[mr]*.yaml"))],
    ids=lambda path: path.stem,
)
def test_what_is_for_an_operator_names_its_api(path: Path) -> None:
    for manifest in documents(path.read_text()):
        assert manifest["apiVersion"] in OF_OPERATORS
        assert manifest["metadata"]["name"]


@pytest.mark.parametrize(
    "path", sorted(K8S.glob("examples/spark-*.yaml")), ids=lambda path: path.stem
)
def test_a_job_of_an_operator_has_jars_brokers_and_tables_on_its_volume(path: Path) -> None:
    """The volume is shared by driver and executors; the image's own places are not."""
    text = path.read_text()
    for key in ("JOB__TABLES", "JOB__CHECKPOINT"):
        assert re.search(rf"LAGGARD_{key}(: |, value: )/var/lib/laggard/", text)
    assert text.count("extraClassPath: /opt/laggard/jars/spark/*") == 2
    assert (
        "LAGGARD_CLUSTER__BOOTSTRAP_SERVERS" in text
        or "LAGGARD_CONFIG, value: /etc/laggard/" in text
    )
    assert "local:///opt/laggard/jars/spark/*" not in text, (
        "Spark expands no pattern in such a place"
    )
    assert f"laggard-spark:{__version__}" in text
    assert text.count("command: [laggard, run, --check, live]") == 2
    assert text.count("command: [laggard, run, --check, ready]") == 1
    assert text.count("runAsUser: 10001, fsGroup: 10001") == 1
    assert text.count("readOnlyRootFilesystem: true") == 1


@pytest.mark.parametrize("name", ["laggard-job", "laggard-exporter"])
def test_a_pod_has_no_rights_it_does_not_need(name: str) -> None:
    spec = pod(name)
    (container,) = spec["containers"]

    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False  # they would set LAGGARD_… in the environment
    assert (
        spec["securityContext"] | {"runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001}
        == spec["securityContext"]
    )
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "memory" in container["resources"]["limits"]
    assert all(
        volume["secret"]["defaultMode"] == 0o440 for volume in spec["volumes"] if "secret" in volume
    )


def test_there_is_one_job_and_its_end_has_time() -> None:
    job = by_name(base())["Deployment", "laggard-job"]["spec"]
    assert (job["replicas"], job["strategy"]) == (1, {"type": "Recreate"})
    assert job["template"]["spec"]["terminationGracePeriodSeconds"] >= STOP_SECONDS + 10


def test_the_jobs_probes_are_its_own_command() -> None:
    (container,) = pod("laggard-job")["containers"]
    probes = {
        name: container[name]["exec"]["command"] for name in container if name.endswith("Probe")
    }
    live, ready = (["laggard", "run", "--check", what] for what in ("live", "ready"))
    assert probes == {"startupProbe": live, "livenessProbe": live, "readinessProbe": ready}


def test_ports_and_labels_lead_from_prometheus_to_the_exporter() -> None:
    found = by_name([*base(), *documents((K8S / "monitoring" / "monitor.yaml").read_text())])
    port = int(Config().exporter.listen.rpartition(":")[2])
    labels = found["Deployment", "laggard-exporter"]["spec"]["template"]["metadata"]["labels"]
    (container,) = pod("laggard-exporter")["containers"]
    monitor, policy = (
        found["ServiceMonitor", "laggard-exporter"],
        found["NetworkPolicy", "laggard-exporter"],
    )

    assert container["ports"] == [{"name": "http", "containerPort": port}]
    assert found["Service", "laggard-exporter"]["spec"]["selector"] == labels
    assert found["Service", "laggard-exporter"]["spec"]["ports"] == [
        {"name": "http", "port": port, "targetPort": "http"}
    ]
    assert (
        monitor["spec"]["selector"]["matchLabels"]
        == found["Service", "laggard-exporter"]["metadata"]["labels"]
    )
    assert monitor["spec"]["endpoints"][0]["port"] == "http"
    assert policy["spec"]["ingress"][0]["ports"] == [{"protocol": "TCP", "port": port}]
    for name in ("job", "exporter"):
        chosen = found["Deployment", f"laggard-{name}"]["spec"]["template"]["metadata"]["labels"]
        for kind, key in (("NetworkPolicy", "podSelector"), ("PodDisruptionBudget", "selector")):
            assert found[kind, f"laggard-{name}"]["spec"][key]["matchLabels"] == chosen


def test_the_configuration_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "laggard.toml").write_text(
        by_name(base())["ConfigMap", "laggard"]["data"]["laggard.toml"]
    )
    config = load_config(str(tmp_path / "laggard.toml"), [], {})
    assert config.cluster.bootstrap_servers == ("kafka-bootstrap.kafka:9092",)
    assert config.exporter.listen == "0.0.0.0:8917"


def test_images_have_the_version_of_the_package() -> None:
    images = {
        spec["containers"][0]["image"] for spec in map(pod, ("laggard-job", "laggard-exporter"))
    }
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert images == {f"laggard:{__version__}", f"laggard-exporter:{__version__}"}
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_keda_asks_for_a_metric_that_is_served() -> None:
    (scaled,) = documents((K8S / "examples" / "keda.yaml").read_text())
    metric = (
        scaled["spec"]["triggers"][0]["metadata"]["query"].removeprefix("max(").partition("{")[0]
    )
    assert metric in {family.name for family in FAMILIES}


def schema_problems(change: Manifest) -> list[str]:
    """Sentences on the chart's values with this change, by the chart's own schema."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for key, value in change.items():
        values[key] = values.get(key, {}) | value if isinstance(value, dict) else value
    return [each.message for each in jsonschema.Draft7Validator(schema).iter_errors(values)]


def test_the_charts_own_values_hold_to_its_schema() -> None:
    assert schema_problems({}) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"servicemonitor": True}, "'servicemonitor' was unexpected"),
        ({"job": {"replicas": 2}}, "'replicas' was unexpected"),
        ({"serviceMonitor": "yes"}, "'yes' is not of type 'boolean'"),
        ({"volume": {"accessModes": ["ReadOnlyMany"]}}, "'ReadOnlyMany' is not one of"),
        ({"volume": {"size": "many"}}, "'many' does not match"),
        ({"network": {"ports": [0]}}, "0 is less than the minimum of 1"),
        ({"job": {"terminationGracePeriodSeconds": 5}}, "5 is less than the minimum of 30"),
        ({"bucket": {"tables": "/var/lib"}}, "'/var/lib' does not match"),
        ({"bucket": {"environment": {"region": "x"}}}, "'region' does not match"),
        ({"config": 5}, "5 is not of type 'string'"),
    ],
)
def test_a_wrong_value_of_the_chart_is_refused(change: Manifest, problem: str) -> None:
    (found,) = schema_problems(change)
    assert problem in found


def tool(name: str) -> str:
    """A program of `make tools`."""
    found = shutil.which(name, path=str(ROOT / ".tools")) or shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not here: make tools builds it where Go is installed")
    return found


def printed(*command: str) -> list[Manifest]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def rendered(*options: str) -> list[Manifest]:
    return printed(tool("helm"), "template", "laggard", str(CHART), *options)


def built(folder: Path) -> dict[tuple[str, str], Manifest]:
    """What `kubectl apply -k` would send."""
    found = by_name(printed(tool("kustomize"), "build", str(folder)))
    for manifest in found.values():
        if manifest["apiVersion"] not in OF_OPERATORS:
            kubernetes_validate.validate(manifest, API, strict=True)
    return found


@pytest.mark.full
def test_the_chart_renders_what_the_manifests_say() -> None:
    manifests = by_name([*base(), *monitoring()])
    del manifests["Namespace", "laggard"]
    found = by_name(rendered("--set", "serviceMonitor=true", "--set", "prometheusRule=true"))
    for each in found.values():  # the chart starts pods again when their configuration changes
        if each["kind"] == "Deployment":
            assert (
                len(each["spec"]["template"]["metadata"].pop("annotations")["checksum/config"])
                == 64
            )
    assert found == manifests


@pytest.mark.full
def test_the_chart_with_a_bucket_renders_what_the_manifests_with_a_bucket_say(
    tmp_path: Path,
) -> None:
    manifests = built(ROOT / "docker" / "k8s-bucket")
    del manifests["Namespace", "laggard"]
    for each in manifests.values():
        del each["metadata"]["namespace"]
    role = manifests["ServiceAccount", "laggard"]["metadata"]["annotations"]
    values = {
        "bucket": {
            "tables": "s3://my-bucket/laggard/prod",
            "environment": {"LAGGARD_STORAGE__REGION": "eu-west-1"},
            "accountAnnotations": role,
        }
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))

    found = by_name(rendered("--values", str(tmp_path / "mine.yaml")))

    for each in found.values():
        if each["kind"] == "Deployment":  # a patch of kustomize moves its volume to the front
            del each["spec"]["template"]["metadata"]["annotations"]
            for same in (each, manifests["Deployment", each["metadata"]["name"]]):
                same["spec"]["template"]["spec"]["volumes"].sort(key=itemgetter("name"))
    assert found == manifests


@pytest.mark.full
def test_the_chart_is_valid_with_other_values_too() -> None:
    values = (
        "volume.accessModes={ReadWriteMany}",
        "volume.storageClassName=nfs",
        "network.ports={9095}",
        "job.image=x:1",
    )
    found = by_name(rendered(*(word for value in values for word in ("--set", value))))
    for manifest in found.values():
        kubernetes_validate.validate(manifest, API, strict=True)
    assert "affinity" not in found["Deployment", "laggard-exporter"]["spec"]["template"]["spec"]
    assert found["NetworkPolicy", "laggard-job"]["spec"]["egress"][1]["ports"] == [
        {"protocol": "TCP", "port": 9095}
    ]


@pytest.mark.full
def test_helm_refuses_a_value_that_the_chart_does_not_know() -> None:
    command = [tool("helm"), "template", "laggard", str(CHART), "--set", "job.replicas=2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert "replicas" in done.stderr


@pytest.mark.full
def test_kustomize_builds_the_manifests_in_their_namespace_and_with_the_monitor(
    tmp_path: Path,
) -> None:
    folder = Path(shutil.copytree(K8S, tmp_path / "k8s"))
    file = folder / "kustomization.yaml"
    file.write_text(
        file.read_text().replace("# components: [monitoring]", "components: [monitoring]")
    )

    found = built(folder)

    expected = by_name([*base(), *monitoring()])
    for (kind, _), manifest in expected.items():
        if kind != "Namespace":
            manifest["metadata"]["namespace"] = "laggard"
    assert found == expected


@pytest.mark.full
def test_with_a_bucket_nothing_is_shared_and_both_pods_reach_it() -> None:
    found = built(ROOT / "docker" / "k8s-bucket")
    pods = {
        name: found["Deployment", f"laggard-{name}"]["spec"]["template"]["spec"]
        for name in ("job", "exporter")
    }

    assert ("PersistentVolumeClaim", "laggard") not in found
    assert "persistentVolumeClaim" not in str(pods)
    assert "affinity" not in pods["exporter"]
    assert {"name": "laggard", "emptyDir": {"sizeLimit": "5Gi"}} in pods["job"]["volumes"]
    assert pods["job"]["containers"][0]["env"] == pods["exporter"]["containers"][0]["env"]
    for name, spec in pods.items():
        environment = {each["name"]: each["value"] for each in spec["containers"][0]["env"]}
        config = load_config(None, [], environment)
        assert config.job.tables.startswith("s3://")
        assert config.storage.region == "eu-west-1"
        assert ("ServiceAccount", spec["serviceAccountName"]) in found
        egress = found["NetworkPolicy", f"laggard-{name}"]["spec"]["egress"]
        ports: set[tuple[int, str | None]] = set()
        for rule in egress:
            cidrs = [to.get("ipBlock", {}).get("cidr") for to in rule.get("to", [{}])]
            ports |= {(port["port"], cidr) for port in rule["ports"] for cidr in cidrs}
        assert {
            (53, None),
            (443, None),
            (80, "169.254.170.23/32"),
            (80, "169.254.169.254/32"),
        } <= ports
        assert (9092, None) in ports or name == "exporter"

# The exporter: Python, the packages it imports and their libraries; no Java, no shell. `make images` builds it.
ARG BASE=debian:bookworm-slim@sha256:96e378d7e6531ac9a15ad505478fcc2e69f371b10f5cdf87857c4b8188404716

FROM ${BASE} AS build
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends binutils ca-certificates python3-venv
COPY docker/requirements-build.txt docker/requirements-exporter.txt docker/exporter_files.py docker/sbom.py docker/licences.csv /build/docker/
RUN python3 -m venv --copies /opt/laggard \
    && /opt/laggard/bin/pip install --no-cache-dir --require-hashes -r /build/docker/requirements-build.txt \
    && /opt/laggard/bin/pip install --no-cache-dir --require-hashes --only-binary=:all: --no-compile \
        --target /image/opt/laggard -r /build/docker/requirements-exporter.txt
COPY setup.cfg pyproject.toml README.md LICENSE /build/
COPY conf /build/conf
COPY lib /build/lib
RUN cd /build \
    && /opt/laggard/bin/pip install --no-cache-dir --no-deps --no-build-isolation --no-index --no-compile \
        --target /image/opt/laggard . \
    && /opt/laggard/bin/python docker/exporter_files.py /image > /build/files \
    && python3 docker/sbom.py /image/opt/laggard/sbom.cdx.json laggard-exporter /image/opt/laggard --files $(cat /build/files)

FROM scratch
COPY --from=build /image /
ENV HOME=/tmp \
    LAGGARD_JOB__TABLES=/var/lib/laggard/tables \
    PYTHONPATH=/opt/laggard \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp
USER 10001:10001
EXPOSE 8917
ENTRYPOINT ["/usr/bin/python3", "-m", "laggard"]
CMD ["export", "--listen", "0.0.0.0:8917"]

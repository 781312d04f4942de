# The daemon and the command line, and nothing else: no shell, no package manager, no compiler.
# Packages come from deploy/packages.txt, the list that the demo and the tests use.
#
#   docker build --tag reprise .
#   docker run --rm -p 8000-8002:8000-8002 -v /path/to/models:/models:ro reprise
#
# tests/container builds and proves it.

FROM docker.io/library/debian:bookworm-slim AS build
# Where compilations are kept; mount a folder there to build again quickly. The key of a compilation
# leaves out where it took place, but not the language of its messages.
ARG CCACHE_DIR=/root/.cache/ccache
ENV CCACHE_BASEDIR=/reprise CCACHE_NOHASHDIR=1 LANG=C.UTF-8
WORKDIR /reprise
COPY deploy/packages.txt deploy/lib.sh deploy/
RUN bash -c '. deploy/lib.sh && install_packages build runtime model package'
COPY CMakeLists.txt CMakePresets.json ./
COPY cmake cmake
COPY proto proto
COPY runtime runtime
COPY command_line command_line
COPY server server
COPY client client
COPY tools tools
RUN bash -c '. deploy/lib.sh && build release -DREPRISE_TESTS=OFF -- reprised reprise'
COPY LICENSE ./
COPY deploy/packages deploy/packages
RUN cd deploy && python3 -B -m packages root /reprise/build/release /image

FROM scratch
COPY --from=build /image /
ENV PATH=/usr/local/bin
USER 10001
EXPOSE 8000 8001 8002
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["reprise", "health", "--timeout-ms", "3000"]
# In a container every address is meant; -p and the network decide which clients may connect.
ENTRYPOINT ["reprised", "--grpc-address", "0.0.0.0", "--http-address", "0.0.0.0", "--metrics-address", "0.0.0.0"]
CMD ["--model-repository", "/models"]

# The daemon and the command line on Debian 12. Packages come from deploy/packages.txt, the list that
# the demo and the tests use.
#
#   docker build --tag reprise .
#   docker run --rm -p 8000-8002:8000-8002 -v /path/to/models:/models:ro reprise

FROM docker.io/library/debian:bookworm-slim AS build
WORKDIR /reprise
COPY deploy/packages.txt deploy/lib.sh deploy/
RUN bash -c '. deploy/lib.sh && install_packages build'
COPY CMakeLists.txt CMakePresets.json ./
COPY cmake cmake
COPY proto proto
COPY runtime runtime
COPY server server
COPY client client
RUN bash -c '. deploy/lib.sh && build release -DREPRISE_TESTS=OFF -- reprised reprise' \
    && strip build/release/reprised build/release/reprise

FROM docker.io/library/debian:bookworm-slim
COPY deploy/packages.txt deploy/lib.sh /tmp/reprise/deploy/
RUN bash -c '. /tmp/reprise/deploy/lib.sh && install_packages runtime' \
    && rm -rf /tmp/reprise /root/.cache /var/lib/apt/lists/* /var/cache/apt/* /usr/share/doc /usr/share/man \
    && useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin reprise \
    && mkdir /models
COPY --from=build /reprise/build/release/reprised /reprise/build/release/reprise /usr/local/bin/
USER 10001
EXPOSE 8000 8001 8002
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["reprise", "health", "--timeout-ms", "3000"]
# In a container every address is meant; -p and the network decide who may connect.
ENTRYPOINT ["reprised", "--grpc-address", "0.0.0.0", "--http-address", "0.0.0.0", "--metrics-address", "0.0.0.0"]
CMD ["--model-repository", "/models"]

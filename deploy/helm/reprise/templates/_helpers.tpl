{{- define "reprise.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "reprise.selector" -}}
app.kubernetes.io/name: reprise
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "reprise.labels" -}}
{{ include "reprise.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "reprise.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "reprise.keySecret" -}}
{{- if .Values.keys.content }}{{ include "reprise.name" . }}-keys{{ else }}{{ .Values.keys.secret }}{{ end }}
{{- end }}

{{- define "reprise.tlsSecret" -}}
{{- if .Values.tls.certificate }}{{ include "reprise.name" . }}-tls{{ else }}{{ .Values.tls.secret }}{{ end }}
{{- end }}

{{- define "reprise.prefixEvents" -}}
{{- if and .Values.inferencePool.enabled .Values.inferencePool.prefixEvents }}true{{ end }}
{{- end }}

{{- /* Mistakes that no schema shows. */ -}}
{{- define "reprise.check" -}}
{{- $models := .Values.models }}
{{- if and $models.repository.claim $models.repository.image }}
{{- fail (printf "models.repository: claim %q and image %q exclude each other" $models.repository.claim $models.repository.image) }}
{{- end }}
{{- if not (or $models.repository.claim $models.repository.image $models.named) }}
{{- fail "no model: give models.repository.claim, models.repository.image or models.named" }}
{{- end }}
{{- if and .Values.recipes.bundle.claim .Values.recipes.bundle.image }}
{{- fail (printf "recipes.bundle: claim %q and image %q exclude each other" .Values.recipes.bundle.claim .Values.recipes.bundle.image) }}
{{- end }}
{{- if and .Values.tls.mutual (not (include "reprise.tlsSecret" .)) }}
{{- fail "tls.mutual needs tls.secret or tls.certificate" }}
{{- end }}
{{- if and .Values.tls.mutual .Values.tls.certificate (not .Values.tls.authorities) }}
{{- fail "tls.mutual with tls.certificate needs tls.authorities" }}
{{- end }}
{{- if and .Values.keys.secret .Values.keys.content }}
{{- fail "keys: secret and content exclude each other" }}
{{- end }}
{{- if and .Values.inferencePool.enabled (include "reprise.tlsSecret" .) }}
{{- fail "inferencePool: gateways and pickers speak to pods without TLS; leave tls out, and let the gateway or a mesh encrypt" }}
{{- end }}
{{- if and (ne .Values.autoscaling.kind "none") (lt (int .Values.autoscaling.maxReplicas) (int .Values.replicas)) }}
{{- fail (printf "autoscaling.maxReplicas (%d) is below replicas (%d)" (int .Values.autoscaling.maxReplicas) (int .Values.replicas)) }}
{{- end }}
{{- end }}

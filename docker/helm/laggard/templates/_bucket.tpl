{{/* With the tables in a bucket: where they are, and ways out to it and to the cloud's credentials. */}}
{{- define "bucket.environment" }}
          env:
            - {name: LAGGARD_JOB__TABLES, value: {{ .Values.bucket.tables | quote }}}
            {{- range $name, $value := .Values.bucket.environment }}
            - {name: {{ $name }}, value: {{ $value | quote }}}
            {{- end }}
{{- end }}
{{- define "bucket.egress" }}
    - ports:
        - {protocol: UDP, port: 53}
        - {protocol: TCP, port: 53}
        - {protocol: TCP, port: {{ .Values.bucket.port }}}
    - to:
        - ipBlock: {cidr: 169.254.170.23/32}  # EKS Pod Identity
      ports:
        - {protocol: TCP, port: 80}
    - to:
        - ipBlock: {cidr: 169.254.169.254/32}  # the machine's metadata; 988: GKE's
      ports:
        - {protocol: TCP, port: 80}
        - {protocol: TCP, port: 988}
{{- end }}

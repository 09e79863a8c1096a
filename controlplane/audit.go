// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"trueup.dev/controlplane/internal/datadir"
)

// auditPolicy logs each request when it is complete. Bodies are logged for writes, but never secrets.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  nonResourceURLs: ["/healthz*", "/livez*", "/readyz*", "/version", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*"]
- level: None
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
- level: Metadata
  resources:
  - {group: "", resources: [secrets, serviceaccounts/token]}
  - {group: authentication.k8s.io, resources: [tokenreviews]}
- level: Request
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
`

// prepareAudit completes the options for the audit log: its policy is a file in the data directory.
func (o *Options) prepareAudit(data *datadir.Folder) error {
	if o.AuditLog == "" {
		return nil
	}
	absolute, err := filepath.Abs(o.AuditLog)
	if err != nil {
		return fmt.Errorf("audit log %s: %w", o.AuditLog, err)
	}
	o.AuditLog = absolute
	file, err := os.OpenFile(absolute, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("audit log %s: %w", absolute, datadir.Cause(err))
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("audit log %s: %w", absolute, datadir.Cause(err))
	}
	policy := data.File("audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("audit policy %s: %w", policy, datadir.Cause(err))
	}
	// A flag of the user comes later and overrides this one.
	o.APIServerArgs = slices.Concat([]string{auditPolicyFlag + "=" + policy}, o.APIServerArgs)
	return nil
}

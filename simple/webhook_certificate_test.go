// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// What does an app with webhooks say if the certificate is missing?
func TestWebhookServer_withoutACertificate(t *testing.T) {
	dir := t.TempDir()
	server := &webhookServer{Server: webhook.NewServer(webhook.Options{CertDir: dir})}
	err := server.Start(t.Context())
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that of the file", err)
	}
	for _, want := range []string{
		"the webhook server has no certificate in " + dir + ": ", "set Webhooks.CertDir", "cert-manager", "trueup up",
		"tls.crt",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

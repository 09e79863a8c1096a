// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

func TestManager(t *testing.T) {
	m := &Manager{Cluster: Cluster{Scheme: clientgoscheme.Scheme}}
	select {
	case <-m.Elected():
		t.Error("the manager is elected by default")
	default:
	}
	m.Leader = true
	<-m.Elected()
	if m.GetWebhookServer() != m.GetWebhookServer() {
		t.Error("each call returns another webhook server")
	}
	m.GetEventRecorderFor("it").Event(&corev1.Pod{}, corev1.EventTypeNormal, "Reason", "message")
	m.GetEventRecorder("it").Eventf(&corev1.Pod{}, nil, corev1.EventTypeNormal, "Reason", "action", "note")

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.GetConfig().Host+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.GetHTTPClient().Do(request)
	if err == nil || !strings.Contains(err.Error(), "GET /version: this manager has no API server") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Start(ctx); err != nil {
		t.Error(err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A nil handler behind an interface would panic at its first call.
func TestInformerController_RefusesHandlersThatAreNil(t *testing.T) {
	c := NewInformerController(InformerControllerConfig{})
	for name, err := range map[string]error{
		"watcher":         c.AddWatcher((*nothing)(nil), "k"),
		"widened nil":     c.AddWatcher(WidenWatcher[*corev1.ConfigMap](nil), "k"),
		"widened pointer": c.AddWatcher(WidenWatcher(Untyped[*corev1.ConfigMap]((*nothing)(nil))), "k"),
		"reconciler":      c.AddReconciler((*TypedReconciler[*corev1.ConfigMap])(nil), "k"),
	} {
		if err == nil || !strings.Contains(err.Error(), `kind "k" must not be nil`) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	if err := c.AddWatcher(WidenWatcher(Untyped[*corev1.ConfigMap](&nothing{})), "k"); err != nil {
		t.Error(err)
	}
}

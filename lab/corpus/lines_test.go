// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// TestFrontend is a complete test of a reconciler. The report counts its lines.
func TestFrontend(t *testing.T) {
	converge.Run(t, converge.Scenario{
		Scheme: scheme,
		For:    &Widget{},
		Owns:   []client.Object{&corev1.ConfigMap{}, &corev1.Service{}},
		New:    func(env converge.Env) reconcile.Reconciler { return &frontendReconciler{env.Client, true} },
		Given:  []client.Object{widget("a", WidgetSpec{Data: map[string]string{"mode": "fast"}, Host: "blue.example.com"})},
	})
}

// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// Large returns a scenario with a correct reconciler of several widgets, and so with many injection points.
func Large(widgets int) converge.Scenario {
	s := converge.Scenario{
		Scheme: scheme, For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}, &corev1.Service{}},
		New: func(env converge.Env) reconcile.Reconciler { return &frontendReconciler{env.Client, true} },
	}
	for n := range widgets {
		s.Given = append(s.Given, widget(fmt.Sprintf("w%d", n), WidgetSpec{
			Data: map[string]string{"mode": "fast"}, Host: fmt.Sprintf("w%d.example.com", n),
		}))
	}
	return s
}

// SPDX-License-Identifier: Apache-2.0

package testing

import (
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyTraits test server-side apply.
func applyTraits() []trait {
	get := func(p *place) *corev1.ConfigMap {
		p.Helper()
		configMap := &corev1.ConfigMap{}
		p.must(p.Get(p.ctx, client.ObjectKey{Namespace: p.namespace, Name: "one"}, configMap))
		return configMap
	}
	return []trait{
		{
			feature: "Applying an object that does not exist creates it",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				p.must(
					p.Apply(p.ctx, applied(p, "ConfigMap", map[string]any{"data": map[string]any{"a": "1"}}), client.FieldOwner("me")),
				)
				return yes(get(p).Data["a"] == "1")
			},
		},
		{
			feature: "Fields that are not applied are kept",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				p.create(newConfigMap(p, "one"))
				p.must(
					p.Apply(p.ctx, applied(p, "ConfigMap", map[string]any{"data": map[string]any{"b": "1"}}), client.FieldOwner("me")),
				)
				return yes(get(p).Data["a"] == "1" && get(p).Data["b"] == "1")
			},
		},
		{
			feature: "Fields are removed when their owner no longer applies them",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				p.must(
					p.Apply(
						p.ctx, applied(p, "ConfigMap", map[string]any{"data": map[string]any{"a": "1", "b": "1"}}),
						client.FieldOwner("me"),
					),
				)
				p.must(
					p.Apply(p.ctx, applied(p, "ConfigMap", map[string]any{"data": map[string]any{"a": "1"}}), client.FieldOwner("me")),
				)
				_, ok := get(p).Data["b"]
				return yes(!ok)
			},
		},
		{
			feature: "Applying a field that another manager owns is a conflict",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				p.create(newConfigMap(p, "one"))
				mine := applied(p, "ConfigMap", map[string]any{"data": map[string]any{"a": "2"}})
				err := p.Apply(p.ctx, mine, client.FieldOwner("me"))
				if apierrs.IsConflict(err) {
					p.must(p.Apply(p.ctx, mine, client.FieldOwner("me"), client.ForceOwnership))
				}
				if got := get(p).Data["a"]; got != "2" {
					p.Errorf("applied 2, got %s", got)
				}
				return yes(apierrs.IsConflict(err))
			},
		},
		{
			feature: "Applying a status changes nothing else",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				p.create(resource)
				p.must(p.Status().Apply(p.ctx, applied(p, "Resource", map[string]any{
					"spec": map[string]any{
						"fields": map[string]any{"a": "2"},
					}, "status": map[string]any{"fields": map[string]any{"a": "3"}},
				}), client.FieldOwner("me")))
				p.must(p.Get(p.ctx, client.ObjectKeyFromObject(resource), resource))
				return yes(resource.Spec.Fields["a"] == "1" && resource.Status.Fields["a"] == "3")
			},
		},
		{
			feature: "Applying without finalizers keeps them, on an object that is being deleted",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				configMap.Finalizers = []string{"example.com/wait"}
				p.create(configMap)
				p.must(p.Delete(p.ctx, configMap))
				p.must(
					p.Apply(p.ctx, applied(p, "ConfigMap", map[string]any{"data": map[string]any{"b": "1"}}), client.FieldOwner("me")),
				)
				return yes(p.Get(p.ctx, client.ObjectKeyFromObject(configMap), configMap) == nil)
			},
		},
		{
			feature: "A field manager is required",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				return yes(p.Apply(p.ctx, applied(p, "ConfigMap", nil)) != nil)
			},
		},
	}
}

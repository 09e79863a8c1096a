// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
)

// writeTraits test how writes change an object.
func writeTraits() []trait {
	return []trait{
		{
			feature: "An update with a stale `resourceVersion` is a conflict",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				p.create(resource)
				stale := resource.DeepCopy()
				resource.Spec.Fields["a"] = "2"
				p.must(p.Update(p.ctx, resource))
				stale.Spec.Fields["a"] = "3"
				return fails(p.Update(p.ctx, stale), apierrs.IsConflict)
			},
		},
		{
			feature: "A write that changes nothing keeps the `resourceVersion`",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				p.create(resource)
				before := resource.ResourceVersion
				p.must(p.Update(p.ctx, resource))
				return yes(resource.ResourceVersion == before)
			},
		},
		{
			feature: "`generation` starts at 1, and changes with the desired state",
			fake:    "no", realistic: "yes", onCluster: "yes, if Realistic",
			observe: func(p *place) string {
				resource := newResource(p)
				p.create(resource)
				generations := []int64{resource.Generation}
				resource.Labels = map[string]string{"desired": "no"}
				p.must(p.Update(p.ctx, resource))
				generations = append(generations, resource.Generation)
				resource.Spec.Fields["a"] = "2"
				p.must(p.Update(p.ctx, resource))
				generations = append(generations, resource.Generation)
				return yes(generations[0] == 1 && generations[1] == 1 && generations[2] == 2)
			},
		},
		{
			feature: "Created objects get a `uid` and a `creationTimestamp`",
			fake:    "no", realistic: "yes", onCluster: "yes, if Realistic",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				return yes(configMap.UID != "" && !configMap.CreationTimestamp.IsZero())
			},
		},
		{
			feature: "The `uid` and the `creationTimestamp` are immutable",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				changed := configMap.DeepCopy()
				changed.CreationTimestamp = metav1.NewTime(time.UnixMilli(0))
				p.must(p.Update(p.ctx, changed))
				kept := changed.CreationTimestamp.Equal(&configMap.CreationTimestamp)
				changed.UID = "another"
				return yes(kept && apierrs.IsConflict(p.Update(p.ctx, changed)))
			},
		},
		{
			feature: "The status of a created object is dropped if it is a subresource",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				resource.Status.Fields = map[string]string{"a": "1"}
				p.create(resource)
				stored := &fixture.Resource{}
				p.must(p.Get(p.ctx, client.ObjectKeyFromObject(resource), stored))
				return yes(resource.Status.Fields == nil && stored.Status.Fields == nil)
			},
		},
		{
			feature: "An update does not change a status that is a subresource",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				p.create(resource)
				resource.Status.Fields = map[string]string{"a": "1"}
				p.must(p.Update(p.ctx, resource))
				return yes(resource.Status.Fields == nil)
			},
		},
		{
			feature: "A status update changes nothing else",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				p.create(resource)
				resource.Spec.Fields["a"] = "2"
				resource.Status.Fields = map[string]string{"a": "1"}
				p.must(p.Status().Update(p.ctx, resource))
				return yes(resource.Spec.Fields["a"] == "1" && resource.Status.Fields["a"] == "1")
			},
		},
		{
			feature: "A status write fails if the status is not a subresource",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				return fails(p.Status().Update(p.ctx, configMap), apierrs.IsNotFound)
			},
		},
		{
			feature: "A deleted object is kept until it has no finalizers",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				resource.Finalizers = []string{"example.com/wait"}
				p.create(resource)
				p.must(p.Delete(p.ctx, resource))
				p.must(p.Get(p.ctx, client.ObjectKeyFromObject(resource), resource))
				terminating := !resource.DeletionTimestamp.IsZero()
				resource.Finalizers = nil
				p.must(p.Update(p.ctx, resource))
				return yes(terminating && apierrs.IsNotFound(p.Get(p.ctx, client.ObjectKeyFromObject(resource), resource)))
			},
		},
		{
			feature: "The first deletion changes `generation`, a second one changes nothing",
			fake:    "no", realistic: "yes", onCluster: "yes, if Realistic",
			observe: func(p *place) string {
				resource := newResource(p)
				resource.Finalizers = []string{"example.com/wait"}
				p.create(resource)
				var versions []string
				for range 2 {
					p.must(p.Delete(p.ctx, resource))
					p.must(p.Get(p.ctx, client.ObjectKeyFromObject(resource), resource))
					versions = append(versions, resource.ResourceVersion)
				}
				return yes(resource.Generation == 2 && versions[0] == versions[1])
			},
		},
		{
			feature: "The `resourceVersion` in the preconditions of a deletion is checked",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				return fails(p.Delete(p.ctx, configMap, client.Preconditions{ResourceVersion: new("7")}), apierrs.IsConflict)
			},
		},
		{
			feature: "The `uid` in the preconditions of a deletion is checked",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				return fails(p.Delete(p.ctx, configMap, client.Preconditions{UID: new(types.UID("another"))}), apierrs.IsConflict)
			},
		},
		{
			feature: "Client and APIReader see the same objects",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				return yes(
					p.config.Config().APIReader.Get(p.ctx, client.ObjectKeyFromObject(configMap), &corev1.ConfigMap{}) == nil,
				)
			},
		},
		{
			feature: "A read sees all earlier writes: there is no cache",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				return yes(p.Get(p.ctx, client.ObjectKeyFromObject(configMap), &corev1.ConfigMap{}) == nil)
			},
		},
	}
}

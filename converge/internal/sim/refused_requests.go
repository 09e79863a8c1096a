// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/internal/memapi"
)

// refusedRequests are requests that the API server refuses with status 403 until the controller is idle: quotas that
// are exceeded, and permissions that were taken away.
type refusedRequests []refusal

// refusal refuses requests of a program that have a verb and a resource, in a namespace.
type refusal struct {
	fault   inject.Fault
	program *Program
	memapi.Access

	// used is the number of objects when a quota was exceeded.
	used int
}

// quotaName is the name of the quota in errors.
const quotaName = "converge"

// quotaFaults returns the quota fault for calls that create an object in a namespace.
func (g *gateway) quotaFaults(c *call) inject.Set {
	if !g.machine.Faults.Has(inject.Quota) || c.Act != "create" && c.Act != "apply" || strings.Contains(c.Kind, "/") {
		return 0
	}
	kind, ok := g.machine.Registry.For(c.GVK)
	if !ok || !kind.Namespaced || g.world.Server.Get(c.GVK, client.ObjectKeyFromObject(c.Obj)) != nil {
		return 0
	}
	return inject.SetOf(inject.Quota)
}

// refuse refuses a call, and calls like it, from now on.
func (g *gateway) refuse(c *call, fault inject.Fault) error {
	needed := g.permissions.of(c)
	if len(needed) == 0 {
		return nil
	}
	one := refusal{fault: fault, program: c.process.program, Access: needed[len(needed)-1]} // of an apply, to create
	for _, obj := range g.world.Server.List(c.GVK) {
		if obj.GetNamespace() == one.Namespace {
			one.used++
		}
	}
	one.Name = ""
	g.refusals = append(g.refusals, one)
	return g.refused(c)
}

// refused returns the error of a call that is refused.
func (g *gateway) refused(c *call) error {
	if len(g.refusals) == 0 || c.Outside || c.Cached {
		return nil
	}
	for _, needed := range g.permissions.of(c) {
		like := needed
		like.Name = ""
		for _, r := range g.refusals {
			if r.program != c.process.program || r.Access != like {
				continue
			}
			if r.fault == inject.Quota {
				return memapi.ExceededQuota(
					quotaName, schema.GroupResource{Group: r.Group, Resource: r.Resource},
					cmp.Or(c.Obj.GetName(), c.Obj.GetGenerateName()), r.used,
				)
			}
			return memapi.Forbidden(serviceAccount, needed)
		}
	}
	return nil
}

// permitAgain ends all refusals, and reports whether there were any.
func (g *gateway) permitAgain() bool {
	if len(g.refusals) == 0 {
		return false
	}
	for _, r := range g.refusals {
		text := "allows to " + r.Verb + " " + r.FullResource() + " again"
		if r.fault == inject.Quota {
			text = "has quota for " + r.FullResource() + " again"
		}
		g.trace.Note("api server", text)
	}
	g.refusals = nil
	return true
}

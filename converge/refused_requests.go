// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusedRequests are requests that the API server refuses with status 403 until the controller is idle: quotas that are
// exceeded, and permissions that were taken away.
type refusedRequests []refusal

// refusal refuses requests of a program that have a verb and a resource, in a namespace.
type refusal struct {
	fault   Fault
	program *program
	permission
	// used is the number of objects when a quota was exceeded.
	used int
}

// quotaName is the name of the quota in errors.
const quotaName = "converge"

// quotaFaults returns the quota fault for calls that create an object in a namespace.
func (g *gateway) quotaFaults(c *call) faultSet {
	if !g.run.plan.faults.has(FaultQuota) || c.act != "create" && c.act != "apply" || strings.Contains(c.kind, "/") {
		return 0
	}
	kind, ok := g.run.plan.registry.For(c.gvk)
	if !ok || !kind.Namespaced || g.run.world.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj)) != nil {
		return 0
	}
	return setOf(FaultQuota)
}

// refuse refuses a call, and calls like it, from now on.
func (g *gateway) refuse(c *call, fault Fault) error {
	needed := g.run.permissionsOf(c)
	if len(needed) == 0 {
		return nil
	}
	one := refusal{fault: fault, program: c.process.program, permission: needed[len(needed)-1]} // of an apply, to create
	for _, obj := range g.run.world.server.List(c.gvk) {
		if obj.GetNamespace() == one.namespace {
			one.used++
		}
	}
	one.name = ""
	g.refusals = append(g.refusals, one)
	return g.refused(c)
}

// refused returns the error of a call that is refused.
func (g *gateway) refused(c *call) error {
	if len(g.refusals) == 0 || c.outside || c.cached {
		return nil
	}
	for _, needed := range g.run.permissionsOf(c) {
		like := needed
		like.name = ""
		for _, r := range g.refusals {
			if r.program != c.process.program || r.permission != like {
				continue
			}
			if r.fault == FaultQuota {
				return exceededQuota(r, c)
			}
			return forbidden(needed)
		}
	}
	return nil
}

// exceededQuota is the error of the admission plugin for quotas of numbers of objects.
// (k8s.io/apiserver, pkg/admission/plugin/resourcequota/controller.go)
func exceededQuota(r refusal, c *call) error {
	counted := "count/" + r.resource
	if r.group != "" {
		counted += "." + r.group
	}
	name := c.obj.GetName()
	if name == "" {
		name = c.obj.GetGenerateName()
	}
	return apierrs.NewForbidden(schema.GroupResource{Group: r.group, Resource: r.resource}, name, fmt.Errorf(
		"exceeded quota: %s, requested: %s=1, used: %[2]s=%[3]d, limited: %[2]s=%[3]d", quotaName, counted, r.used,
	))
}

// permitAgain ends all refusals, and reports whether there were any.
func (g *gateway) permitAgain() bool {
	if len(g.refusals) == 0 {
		return false
	}
	for _, r := range g.refusals {
		text := "allows to " + r.verb + " " + r.full() + " again"
		if r.fault == FaultQuota {
			text = "has quota for " + r.full() + " again"
		}
		g.run.trace.note("api server", text)
	}
	g.refusals = nil
	return true
}

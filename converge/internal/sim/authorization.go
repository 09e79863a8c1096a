// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/access"
	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/graph/rbac"
	"trueup.dev/internal/memapi"
)

// serviceAccount is the user of a process, as kubebuilder names it.
const serviceAccount = "system:serviceaccount:system:controller-manager"

// checksAccess reports whether it matters which permissions requests of the program need.
func (p *Program) checksAccess() bool { return p.Roles != nil || p.Recorder != nil }

// permissions decides which requests the roles of programs allow.
type permissions struct {
	*scene

	// probes is set if the run finds out which rules of roles are missing.
	probes bool
}

// authorize returns the error of a request that the roles of the program do not allow.
func (a *permissions) authorize(c *call) error {
	if !c.process.program.checksAccess() || c.Outside || c.Cached {
		return nil
	}
	for _, p := range a.of(c) {
		if err := a.permit(c.process.program, p); err != nil {
			return err
		}
	}
	return nil
}

// permit returns an error if the roles of a program do not allow something. In the run that finds out what is missing,
// it only records that.
func (a *permissions) permit(program *Program, p memapi.Access) error {
	if program.Recorder != nil {
		program.Recorder.Add(rbac.Permission{Group: p.Group, Resource: p.FullResource(), Verb: p.Verb})
	}
	if program.Roles == nil {
		return nil
	}
	for i := range program.Roles {
		if program.Roles[i].Allows(p) {
			a.lessons.accessOf(program).Use(p)
			return nil
		}
	}
	a.lessons.accessOf(program).Lack(p)
	err := memapi.Forbidden(serviceAccount, p)
	if a.probes {
		return nil
	}
	a.verdict.Violate(finding.Violation{
		Oracle: finding.OracleErrors, Cause: finding.CauseForbidden, About: phrase.Name(client.ObjectKey{
			Namespace: p.Namespace, Name: p.Name,
		}),
		Message: "a request is not allowed by the roles: " + err.Error(),
		Details: []string{access.Marker(p.Group, p.FullResource(), []string{p.Verb})},
	})
	return err
}

// watchAllowed requires the permissions for a cache of a kind: list and watch, in all namespaces or in the namespace of
// a role.
func (a *permissions) watchAllowed(program *Program, gvk schema.GroupVersionKind) {
	if !program.checksAccess() {
		return
	}
	kind, ok := a.machine.Registry.For(gvk)
	for _, verb := range []string{"list", "watch"} {
		p := a.forKind(verb, gvk)
		for i := range program.Roles {
			role := &program.Roles[i]
			inNamespace := p
			if inNamespace.Namespace = cmp.Or(role.Namespace, "default"); ok && kind.Namespaced && role.Allows(inNamespace) {
				p = inNamespace
				break
			}
		}
		_ = a.permit(program, p)
	}
}

// watchPermitted returns the error of a watch of an API server that the roles of a program do not allow.
func (a *permissions) watchPermitted(program *Program, gvk schema.GroupVersionKind, opts []client.ListOption) error {
	if !program.checksAccess() {
		return nil
	}
	p := a.forKind("watch", gvk)
	p.Namespace = (&client.ListOptions{}).ApplyOptions(opts).Namespace
	return a.permit(program, p)
}

// forKind returns the permission for all objects of a kind.
func (a *permissions) forKind(verb string, gvk schema.GroupVersionKind) memapi.Access {
	p := memapi.Access{Verb: verb, Group: gvk.Group}
	if kind, ok := a.machine.Registry.For(gvk); ok {
		p.Resource = kind.Plural
	}
	return p
}

// verbs are the verbs of actions.
var verbs = map[string]string{
	"live get": "get", "live list": "list", "create": "create", "update": "update", "patch": "patch", "apply": "patch",
	"delete": "delete", "delete all": "deletecollection",
}

// of returns the permissions that a call requires. An apply that creates an object requires two.
func (a *permissions) of(c *call) []memapi.Access {
	p := a.forKind(verbs[c.Act], c.GVK)
	if p.Verb == "" || p.Resource == "" {
		return nil
	}
	_, p.Subresource, _ = strings.Cut(c.Kind, "/")
	if kind, _ := a.machine.Registry.For(c.GVK); kind.Namespaced {
		p.Namespace = c.Key.Namespace
	}
	switch p.Verb {
	case "create":
		if p.Subresource != "" {
			p.Name = c.Key.Name
		}
	case "list", "deletecollection":
	default:
		p.Name = c.Key.Name
	}
	if c.Act == "apply" && a.world.Server.Get(c.GVK, c.Key) == nil {
		created := p
		created.Verb, created.Name = "create", ""
		return []memapi.Access{p, created}
	}
	return []memapi.Access{p}
}

// reportMissing replaces the violations of the run that finds out which rules are missing, if there are any.
func (a *permissions) reportMissing(programs []*Program) {
	if !a.probes {
		return
	}
	var lines []string
	for _, program := range programs {
		lines = append(lines, a.lessons.accessOf(program).MissingRules()...)
	}
	if len(lines) > 0 {
		a.verdict.Replace(finding.Violation{
			Oracle: finding.OracleErrors, Cause: finding.CauseForbidden, Details: lines,
			Message: "the roles do not allow all requests; missing markers, as a rule has them:",
		})
	}
}

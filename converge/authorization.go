// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/access"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/graph/rbac"
	"trueup.dev/internal/memapi"
)

// serviceAccount is the user of a process, as kubebuilder names it.
const serviceAccount = "system:serviceaccount:system:controller-manager"

// checksAccess reports whether it matters which permissions requests of the program need.
func (p *program) checksAccess() bool { return p.roles != nil || p.recorder != nil }

// authorize returns the error of a request that the roles of the program do not allow.
func (r *run) authorize(c *call) error {
	if !c.process.program.checksAccess() || c.outside || c.cached {
		return nil
	}
	for _, p := range r.permissionsOf(c) {
		if err := r.permit(c.process, p); err != nil {
			return err
		}
	}
	return nil
}

// permit returns an error if the roles of the program of a process do not allow something. In the run that finds out
// what is missing, it only records that.
func (r *run) permit(process *process, p memapi.Access) error {
	program := process.program
	if program.recorder != nil {
		program.recorder.Add(rbac.Permission{Group: p.Group, Resource: p.FullResource(), Verb: p.Verb})
	}
	if program.roles == nil {
		return nil
	}
	for i := range program.roles {
		if program.roles[i].Allows(p) {
			r.lessons.accessOf(program).Use(p)
			return nil
		}
	}
	r.lessons.accessOf(program).Lack(p)
	err := memapi.Forbidden(serviceAccount, p)
	if r.probesRoles {
		return nil
	}
	r.violate(Violation{
		Oracle: OracleErrors, Cause: CauseForbidden, About: phrase.Name(client.ObjectKey{
			Namespace: p.Namespace, Name: p.Name,
		}),
		Message: "a request is not allowed by the roles: " + err.Error(),
		Details: []string{access.Marker(p.Group, p.FullResource(), []string{p.Verb})},
	})
	return err
}

// watchAllowed requires the permissions for a cache of a kind: list and watch, in all namespaces or in that of a role.
func (r *run) watchAllowed(process *process, gvk schema.GroupVersionKind) {
	if !process.program.checksAccess() {
		return
	}
	kind, ok := r.plan.registry.For(gvk)
	for _, verb := range []string{"list", "watch"} {
		p := r.permissionFor(verb, gvk)
		for i := range process.program.roles {
			role := &process.program.roles[i]
			inNamespace := p
			if inNamespace.Namespace = cmp.Or(role.Namespace, "default"); ok && kind.Namespaced && role.Allows(inNamespace) {
				p = inNamespace
				break
			}
		}
		_ = r.permit(process, p)
	}
}

// watchPermitted returns the error of a watch of an API server that the roles of a process do not allow.
func (r *run) watchPermitted(process *process, gvk schema.GroupVersionKind, opts []client.ListOption) error {
	if !process.program.checksAccess() {
		return nil
	}
	p := r.permissionFor("watch", gvk)
	p.Namespace = (&client.ListOptions{}).ApplyOptions(opts).Namespace
	return r.permit(process, p)
}

// permissionFor returns the permission for all objects of a kind.
func (r *run) permissionFor(verb string, gvk schema.GroupVersionKind) memapi.Access {
	p := memapi.Access{Verb: verb, Group: gvk.Group}
	if kind, ok := r.plan.registry.For(gvk); ok {
		p.Resource = kind.Plural
	}
	return p
}

// verbs are the verbs of actions.
var verbs = map[string]string{
	"live get": "get", "live list": "list", "create": "create", "update": "update", "patch": "patch", "apply": "patch",
	"delete": "delete", "delete all": "deletecollection",
}

// permissionsOf returns the permissions that a call requires. An apply that creates an object requires two.
func (r *run) permissionsOf(c *call) []memapi.Access {
	p := r.permissionFor(verbs[c.Act], c.gvk)
	if p.Verb == "" || p.Resource == "" {
		return nil
	}
	_, p.Subresource, _ = strings.Cut(c.Kind, "/")
	if kind, _ := r.plan.registry.For(c.gvk); kind.Namespaced {
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
	if c.Act == "apply" && r.world.server.Get(c.gvk, c.Key) == nil {
		created := p
		created.Verb, created.Name = "create", ""
		return []memapi.Access{p, created}
	}
	return []memapi.Access{p}
}

// reportMissingRules replaces the violations of the run that finds out which rules are missing, if there are any.
func (r *run) reportMissingRules() {
	if !r.probesRoles {
		return
	}
	var lines []string
	for _, program := range r.plan.programs {
		lines = append(lines, r.lessons.accessOf(program).MissingRules()...)
	}
	if len(lines) > 0 {
		r.replace(Violation{
			Oracle: OracleErrors, Cause: CauseForbidden, Details: lines,
			Message: "the roles do not allow all requests; missing markers, as a rule has them:",
		})
	}
}

// unusedRules returns a line for each role that allows something that no run has used. It leaves out what runs do not
// do: to record events, to elect a leader, to set owner references that block deletions, and to review access.
func (p *plan) unusedRules() []string {
	var lines []string
	for _, program := range p.programs {
		used := p.access[program]
		if used == nil {
			used = &access.Usage{}
		}
		for i := range program.roles {
			role := &program.roles[i]
			if found := role.Unused(used); len(found) > 0 {
				lines = append(lines, fmt.Sprintf("%s %s: no run has used %s", role.Kind, role.Name, strings.Join(found, ", ")))
			}
		}
	}
	return lines
}

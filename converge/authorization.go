// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph/rbac"
	"trueup.dev/internal/memapi"
)

// serviceAccount is the user of a process, as kubebuilder names it.
const serviceAccount = "system:serviceaccount:system:controller-manager"

// authorizations counts what the roles of a program allowed and refused, in one run or in all.
type authorizations struct {
	used, missing map[memapi.Access]bool
}

func (a *authorizations) use(p memapi.Access) {
	if p.Name, p.Namespace = "", ""; a.used == nil {
		a.used = map[memapi.Access]bool{}
	}
	a.used[p] = true
}

func (a *authorizations) lack(p memapi.Access) {
	if p.Name, p.Namespace = "", ""; a.missing == nil {
		a.missing = map[memapi.Access]bool{}
	}
	a.missing[p] = true
}

// add adds the authorizations of a run.
func (a *authorizations) add(run *authorizations) {
	for p := range run.used {
		a.use(p)
	}
	for p := range run.missing {
		a.lack(p)
	}
}

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
		if program.roles[i].allows(p) {
			r.lessons.accessOf(program).use(p)
			return nil
		}
	}
	r.lessons.accessOf(program).lack(p)
	err := memapi.Forbidden(serviceAccount, p)
	if r.probesRoles {
		return nil
	}
	r.violate(Violation{
		Oracle: OracleErrors, Cause: CauseForbidden, About: nameOf(client.ObjectKey{Namespace: p.Namespace, Name: p.Name}),
		Message: "a request is not allowed by the roles: " + err.Error(),
		Details: []string{rbacMarker(p.Group, p.FullResource(), []string{p.Verb})},
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
			if inNamespace.Namespace = cmp.Or(role.namespace, "default"); ok && kind.Namespaced && role.allows(inNamespace) {
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
	p := r.permissionFor(verbs[c.act], c.gvk)
	if p.Verb == "" || p.Resource == "" {
		return nil
	}
	_, p.Subresource, _ = strings.Cut(c.kind, "/")
	if kind, _ := r.plan.registry.For(c.gvk); kind.Namespaced {
		p.Namespace = c.key.Namespace
	}
	switch p.Verb {
	case "create":
		if p.Subresource != "" {
			p.Name = c.key.Name
		}
	case "list", "deletecollection":
	default:
		p.Name = c.key.Name
	}
	if c.act == "apply" && r.world.server.Get(c.gvk, c.key) == nil {
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
		lines = append(lines, r.lessons.accessOf(program).missingRules()...)
	}
	if len(lines) > 0 {
		r.replace(Violation{
			Oracle: OracleErrors, Cause: CauseForbidden, Details: lines,
			Message: "the roles do not allow all requests; missing markers, as a rule has them:",
		})
	}
}

// missingRules returns a marker for each resource of which permissions are missing.
func (a *authorizations) missingRules() []string {
	byResource := map[[2]string][]string{}
	for p := range a.missing {
		at := [2]string{p.Group, p.FullResource()}
		byResource[at] = append(byResource[at], p.Verb)
	}
	var lines []string
	for at, verbs := range byResource {
		lines = append(lines, rbacMarker(at[0], at[1], verbs))
	}
	slices.Sort(lines)
	return lines
}

// unusedRules returns a line for each role that allows something that no run has used. It leaves out what runs do not
// do: to record events, to elect a leader, to set owner references that block deletions, and to review access.
func (p *plan) unusedRules() []string {
	var lines []string
	for _, program := range p.programs {
		used := p.access[program]
		if used == nil {
			used = &authorizations{}
		}
		for i := range program.roles {
			role := &program.roles[i]
			if found := role.unused(used); len(found) > 0 {
				lines = append(lines, fmt.Sprintf("%s %s: no run has used %s", role.kind, role.name, strings.Join(found, ", ")))
			}
		}
	}
	return lines
}

// unused returns the resources and verbs of a role that were not used.
func (r *accessRole) unused(a *authorizations) []string {
	var found []string
	for _, rule := range r.rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if isNotSimulated(resource) {
					continue
				}
				name, subresource, _ := strings.Cut(resource, "/")
				left := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool {
					return a.uses(memapi.Access{Verb: verb, Group: group, Resource: name, Subresource: subresource})
				})
				if len(left) == 0 {
					continue
				}
				if group != "" {
					name += "." + group
				}
				if subresource != "" {
					name += "/" + subresource
				}
				found = append(found, fmt.Sprintf("%s (%s)", name, strings.Join(left, ", ")))
			}
		}
	}
	slices.SortFunc(found, cmp.Compare)
	return slices.Compact(found)
}

// uses reports whether a part of a rule, which may have wildcards, was used.
func (a *authorizations) uses(part memapi.Access) bool {
	single := rbacv1.PolicyRule{
		Verbs: []string{part.Verb}, APIGroups: []string{part.Group}, Resources: []string{part.FullResource()},
	}
	for p := range a.used {
		if permits(single, p) {
			return true
		}
	}
	return false
}

// isNotSimulated reports whether a resource is one that processes use only in a cluster.
func isNotSimulated(resource string) bool {
	switch resource {
	case "events", "leases", "tokenreviews", "subjectaccessreviews":
		return true
	}
	return strings.HasSuffix(resource, "/finalizers")
}

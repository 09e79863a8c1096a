// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/graph"
	"trueup.dev/graph/rbac"
	"trueup.dev/observe"
)

// Permissions is the JSON of the page of permissions: what the identity of the program may do, not what the reader may
// do.
type Permissions struct {
	// User is the name of the identity. It is empty if it is unknown.
	User string `json:"user,omitempty"`
	// Namespaces are those in which the API server was asked, at most 5, and OmittedNamespaces is the number of further
	// ones. Asked is when.
	Namespaces        []string  `json:"namespaces"`
	OmittedNamespaces int       `json:"omittedNamespaces,omitempty"`
	Asked             time.Time `json:"asked,omitzero"`
	// Error is why the API server could not be asked, or empty.
	Error string `json:"error,omitempty"`
	// Undescribed are the controllers whose reconcilers do not declare what they need. Problems are kinds that are
	// declared, and unknown.
	Undescribed []string `json:"undescribed,omitempty"`
	Problems    string   `json:"problems,omitempty"`
	// Missing and Unused are the number of permissions in these states.
	Missing int `json:"missing"`
	Unused  int `json:"unused"`
	// Permissions are sorted by state, in the order of the constants, then by group and resource.
	Permissions []Permission `json:"permissions"`
}

// PermissionState is the state of a permission.
type PermissionState string

const (
	// PermissionMissing is declared or used, and not granted in one of the namespaces.
	PermissionMissing PermissionState = "Missing"
	// PermissionUnknown is declared or used. The API server does not say whether it is granted.
	PermissionUnknown PermissionState = "Unknown"
	// PermissionUnused is granted, and neither declared nor used.
	PermissionUnused PermissionState = "Unused"
	// PermissionGranted is declared or used, and granted.
	PermissionGranted PermissionState = "Granted"
)

// Permission is verbs on a resource with the same state.
type Permission struct {
	State PermissionState `json:"state"`
	// Group is the API group, empty for the core group. Resource is followed by a slash and the subresource, if any.
	Group    string   `json:"group"`
	Resource string   `json:"resource"`
	Verbs    []string `json:"verbs"`
	// Declared reports whether a reconciler declares it, and Used whether a call has needed it since the program started.
	Declared bool `json:"declared"`
	Used     bool `json:"used"`
	// MissingIn are the namespaces in which it is not granted.
	MissingIn []string `json:"missingIn,omitempty"`
	// NamesOnly reports whether a rule grants it only for some names of objects.
	NamesOnly bool `json:"namesOnly,omitempty"`
}

// permissions collects what a manager declares, uses and may do. Its page is updated once a second, so what needs
// requests to the API server is kept for a while.
type permissions struct {
	hub    *observe.Hub
	mapper meta.RESTMapper
	cache  cache.Cache
	scheme *runtime.Scheme
	used   *rbac.Recorder
	grants *grants

	mu   sync.Mutex
	last wanted
}

// wanted is what the reconcilers declare, and what they are granted, at a time.
type wanted struct {
	at time.Time
	// declared is what is declared for the cluster of the manager, and elsewhere what is only declared for others.
	declared, elsewhere rbac.Permissions
	undescribed         []string
	problems            string
	answer
}

// newPermissions returns the permissions of a manager.
func newPermissions(mgr manager.Manager, namespaces func() []string) (*permissions, error) {
	asked, err := newGrants(mgr, namespaces)
	if err != nil {
		return nil, err
	}
	return &permissions{
		hub: observe.Of(mgr), mapper: mgr.GetRESTMapper(), cache: mgr.GetCache(), scheme: mgr.GetScheme(),
		used: &rbac.Recorder{}, grants: asked,
	}, nil
}

// record begins to record what is used.
func (p *permissions) record() { p.hub.Add(p.used.Listener(p.mapper)) }

// declared returns what the reconcilers declare. The mapper may send requests for kinds that it does not know.
func (p *permissions) declared() wanted {
	w, reconcilers := wanted{at: time.Now(), elsewhere: rbac.Permissions{}}, []any{}
	for _, name := range p.hub.Controllers() {
		reconciler := p.hub.Reconciler(name)
		if described(reconciler) == nil {
			w.undescribed = append(w.undescribed, name)
			continue
		}
		reconcilers = append(reconcilers, reconciler)
	}
	g := graph.Of(reconcilers...)
	declared, err := rbac.Declared(g, rbac.Options{Mapper: p.mapper})
	if w.declared = declared; err != nil {
		w.problems = err.Error()
	}
	for _, config := range rbac.Configs(g) {
		other, _ := rbac.Declared(g, rbac.Options{Mapper: p.mapper, Config: config}) // the problems are above
		maps.Copy(w.elsewhere, other)
	}
	maps.DeleteFunc(w.elsewhere, func(permission rbac.Permission, _ bool) bool { return declared[permission] })
	return w
}

// current returns what is wanted, at most as old as [grantsAge], and what is used.
func (p *permissions) current(ctx context.Context) (w wanted, used rbac.Permissions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isOld := time.Since(p.last.at) >= grantsAge
	if isOld {
		p.last = p.declared()
		for _, kind := range p.hub.Watched(p.cache, p.scheme) {
			p.used.AddKind(p.mapper, kind, "", rbac.CacheVerbs()...)
		}
	}
	used = p.used.Used()
	// A call does not name its cluster. Reconcilers below a WithConfig use other credentials.
	maps.DeleteFunc(used, func(permission rbac.Permission, _ bool) bool { return p.last.elsewhere[permission] })
	if isOld {
		// A reader who leaves must not fail the requests for others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		p.last.answer = p.grants.ask(ctx, union(p.last.declared, used))
	}
	return p.last, used
}

func union(a, b rbac.Permissions) rbac.Permissions {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// load returns the page of permissions.
func (p *permissions) load(r *http.Request) (page, bool) {
	w, used := p.current(r.Context())
	data := Permissions{
		User: w.user, Asked: w.at, Namespaces: []string{}, OmittedNamespaces: w.omitted, Undescribed: w.undescribed,
		Problems: w.problems,
	}
	if w.err != nil {
		data.Error = w.err.Error()
	}
	states := compare(union(w.declared, used), w.answer)
	for permission, state := range states {
		state.Declared, state.Used = w.declared[permission], used[permission]
		states[permission] = state
		switch state.State {
		case PermissionMissing:
			data.Missing++
		case PermissionUnused:
			data.Unused++
		}
	}
	for _, ns := range w.namespaces {
		data.Namespaces = append(data.Namespaces, ns.name)
	}
	data.Permissions = rows(states)
	return page{Template: "permissions", Title: "Permissions", Data: data}, true
}

// compare returns the state of each permission that is needed or granted, without its verbs.
func compare(needed rbac.Permissions, asked answer) map[rbac.Permission]Permission {
	states := map[rbac.Permission]Permission{}
	for p := range needed {
		states[p] = Permission{State: PermissionGranted}
		if asked.err != nil || len(asked.namespaces) == 0 {
			states[p] = Permission{State: PermissionUnknown}
		}
	}
	for _, ns := range asked.namespaces {
		unnamed := slices.DeleteFunc(slices.Clone(ns.rules), func(rule rbacv1.PolicyRule) bool {
			return len(rule.ResourceNames) > 0
		})
		report := rbac.Check(ns.rules, needed, nil)
		missing := rbac.Of(report.NotGranted...)
		for _, p := range rbac.Check(unnamed, needed, nil).NotGranted {
			state := states[p]
			allowed, reviewed := ns.allowed[p]
			switch {
			case allowed:
			case !missing[p]:
				state.NamesOnly = true
			case ns.incomplete && !reviewed:
				if state.State == PermissionGranted {
					state.State = PermissionUnknown
				}
			default:
				state.State, state.MissingIn = PermissionMissing, append(state.MissingIn, ns.name)
			}
			states[p] = state
		}
		for _, p := range report.NotNeeded {
			if !isGrantedToAll(p) {
				states[p] = Permission{State: PermissionUnused}
			}
		}
	}
	return states
}

// isGrantedToAll reports whether each user or service account has a permission: to ask what it may do, and to read the
// authorities that a cluster trusts.
func isGrantedToAll(p rbac.Permission) bool {
	return strings.HasPrefix(p.Resource, "selfsubject") || p.Resource == "clustertrustbundles" && p.Verb != "*"
}

// rows groups the verbs of a resource that have the same state.
func rows(states map[rbac.Permission]Permission) []Permission {
	found := []Permission{}
	order := func(a, b rbac.Permission) int { return cmp.Compare(a.String(), b.String()) }
	for _, p := range slices.SortedFunc(maps.Keys(states), order) {
		row := states[p]
		row.Group, row.Resource, row.Verbs = p.Group, p.Resource, []string{p.Verb}
		i := slices.IndexFunc(found, func(other Permission) bool {
			return row.State == other.State && row.Group == other.Group && row.Resource == other.Resource &&
				row.Declared == other.Declared && row.Used == other.Used && row.NamesOnly == other.NamesOnly &&
				slices.Equal(row.MissingIn, other.MissingIn)
		})
		if i >= 0 {
			found[i].Verbs = append(found[i].Verbs, p.Verb)
			continue
		}
		found = append(found, row)
	}
	rank := []PermissionState{PermissionMissing, PermissionUnknown, PermissionUnused, PermissionGranted}
	usedFirst := func(p Permission) int {
		if p.Used {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(found, func(a, b Permission) int {
		return cmp.Or(
			cmp.Compare(slices.Index(rank, a.State), slices.Index(rank, b.State)),
			cmp.Compare(usedFirst(a), usedFirst(b)), // it fails now
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		)
	})
	return found
}

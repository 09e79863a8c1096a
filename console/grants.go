// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/graph/rbac"
	"trueup.dev/observe/recorder"
)

const (
	// grantsAge is the time for which answers of the API server are kept.
	grantsAge = 30 * time.Second
	// reviewTimeout limits the time for all requests of a page.
	reviewTimeout = 5 * time.Second
	// maxReviewed limits the namespaces that are asked about, and maxSingleReviews the permissions that are asked about
	// one by one.
	maxReviewed      = 5
	maxSingleReviews = 100
)

// grants asks the API server what the identity of a manager may do, when a page is loaded. These requests are reviews,
// which the API server answers and does not persist.
type grants struct {
	authorization  authorizationclient.AuthorizationV1Interface
	authentication authenticationclient.AuthenticationV1Interface
	// namespaces returns those to ask about, the most important first.
	namespaces func() []string
}

// answer is what the API server has answered.
type answer struct {
	user       string
	namespaces []namespaceGrants
	omitted    int // namespaces
	err        error
}

// namespaceGrants is what the rules of a namespace grant.
type namespaceGrants struct {
	name  string
	rules []rbacv1.PolicyRule
	// incomplete reports whether other authorizers may grant more. allowed has the permissions that were asked about.
	incomplete bool
	allowed    map[rbac.Permission]bool
}

func newGrants(mgr manager.Manager, namespaces func() []string) (*grants, error) {
	authorization, err := authorizationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	authentication, err := authenticationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	return &grants{authorization: authorization, authentication: authentication, namespaces: namespaces}, err
}

// ask asks what the rules grant, and about the needed permissions if the rules are incomplete.
func (g *grants) ask(ctx context.Context, needed rbac.Permissions) answer {
	a := answer{}
	self, err := g.authentication.SelfSubjectReviews().Create(
		ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{},
	)
	if err == nil { // otherwise the user is unknown, which does not matter
		a.user = self.Status.UserInfo.Username
	}
	namespaces, single := g.namespaces(), 0
	a.omitted = max(0, len(namespaces)-maxReviewed)
	for _, name := range slices.Sorted(slices.Values(namespaces[:len(namespaces)-a.omitted])) {
		ns, err := g.rules(ctx, name)
		if err != nil {
			a.err = errors.Join(a.err, fmt.Errorf("namespace %s: %w", name, err))
			continue
		}
		if ns.incomplete {
			for _, p := range rbac.Check(ns.rules, needed, nil).NotGranted {
				if single++; single > maxSingleReviews {
					break
				}
				allowed, err := g.mayDo(ctx, name, p)
				if err != nil {
					a.err = errors.Join(a.err, fmt.Errorf("%s in namespace %s: %w", p, name, err))
					break
				}
				ns.allowed[p] = allowed
			}
		}
		a.namespaces = append(a.namespaces, ns)
	}
	return a
}

// rules returns the rules that apply in a namespace.
func (g *grants) rules(ctx context.Context, namespace string) (namespaceGrants, error) {
	ns := namespaceGrants{name: namespace, allowed: map[rbac.Permission]bool{}}
	review, err := g.authorization.SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}, metav1.CreateOptions{})
	if err != nil {
		return ns, err
	}
	ns.incomplete = review.Status.Incomplete
	for _, rule := range review.Status.ResourceRules {
		ns.rules = append(ns.rules, rbacv1.PolicyRule{
			APIGroups: rule.APIGroups, Resources: rule.Resources, Verbs: rule.Verbs, ResourceNames: rule.ResourceNames,
		})
	}
	return ns, nil
}

// mayDo asks about one permission.
func (g *grants) mayDo(ctx context.Context, namespace string, p rbac.Permission) (bool, error) {
	resource, subresource, _ := strings.Cut(p.Resource, "/")
	review, err := g.authorization.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: p.Verb, Group: p.Group, Resource: resource, Subresource: subresource,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// namespacesOf returns the namespaces of the recorded objects, those with trouble first. It is not empty.
func namespacesOf(r *recorder.Recorder) []string {
	found, seen := []string{}, map[string]bool{}
	objects, _ := r.Objects(recorder.Query{})
	for _, o := range objects {
		if namespace := cmp.Or(o.Object.Namespace, metav1.NamespaceDefault); !seen[namespace] {
			seen[namespace], found = true, append(found, namespace)
		}
	}
	if len(found) == 0 {
		return []string{metav1.NamespaceDefault}
	}
	return found
}

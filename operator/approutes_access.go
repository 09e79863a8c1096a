// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"trueup.dev/internal/serving/apipath"
)

const (
	// reviewTTL and reviewTimeout are the defaults of API servers that delegate to another one. The filters of
	// controller-runtime use an answer for minutes, and authorize the path as if it were not the path of a resource.
	reviewTTL     = 10 * time.Second
	reviewTimeout = 10 * time.Second
	// maxReviews limits the memory for answers.
	maxReviews = 4096
)

// reviews asks the API server who users are and what they may do. Requests with the same token and for the same object
// use an answer again.
type reviews struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	known  *cache.LRUExpireCache
}

func newReviews(config *rest.Config) (*reviews, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 200, 400 // as in API servers that delegate; all users share the client
	tokens, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	access, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &reviews{
		tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(), known: cache.NewLRUExpireCache(maxReviews),
	}, nil
}

func newTokenReview(token string) *authenticationv1.TokenReview {
	return &authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenReview"},
		Spec:     authenticationv1.TokenReviewSpec{Token: token},
	}
}

func newAccessReview() *authorizationv1.SubjectAccessReview {
	return &authorizationv1.SubjectAccessReview{TypeMeta: metav1.TypeMeta{
		APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview",
	}}
}

// authenticate returns the user whose bearer token the request has, or an error to respond with.
func (r *reviews) authenticate(ctx context.Context, req *http.Request) (authenticationv1.UserInfo, error) {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return authenticationv1.UserInfo{}, apierrs.NewUnauthorized("a bearer token is required")
	}
	status, err := reviewed(ctx, r, token, func(ctx context.Context) (authenticationv1.TokenReviewStatus, error) {
		review, err := r.tokens.Create(ctx, newTokenReview(token), metav1.CreateOptions{})
		if err != nil {
			return authenticationv1.TokenReviewStatus{}, unreviewed("tokenreviews", err)
		}
		return review.Status, nil
	})
	switch {
	case err != nil:
		return authenticationv1.UserInfo{}, err
	case !status.Authenticated:
		return authenticationv1.UserInfo{}, apierrs.NewUnauthorized(cmp.Or(status.Error, "the bearer token is not valid"))
	}
	return status.User, nil
}

// authorize returns nil if the user may send the request, and otherwise an error to respond with.
func (r *reviews) authorize(
	ctx context.Context, user authenticationv1.UserInfo, at apipath.Request, method string,
) error {
	review := newAccessReview()
	review.Spec = authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: at.Namespace, Verb: cmp.Or(at.Verb, strings.ToLower(method)), Group: at.Group, Version: at.Version,
			Resource: at.Resource, Subresource: at.Subresource, Name: at.Name,
		},
	}
	for key, values := range user.Extra {
		if review.Spec.Extra == nil {
			review.Spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		review.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	status, err := reviewed(ctx, r, review.Spec, func(
		ctx context.Context,
	) (authorizationv1.SubjectAccessReviewStatus, error) {
		made, err := r.access.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return authorizationv1.SubjectAccessReviewStatus{}, unreviewed("subjectaccessreviews", err)
		}
		return made.Status, nil
	})
	switch {
	case err != nil:
		return err
	case status.Allowed && !status.Denied:
		return nil
	}
	return apierrs.NewForbidden(
		schema.GroupResource{Group: at.Group, Resource: at.Resource}, at.Name, denied(review.Spec, status),
	)
}

// denied says what the user may not do, as the API server does.
func denied(spec authorizationv1.SubjectAccessReviewSpec, status authorizationv1.SubjectAccessReviewStatus) error {
	a := spec.ResourceAttributes
	full := apipath.Request{Resource: a.Resource, Subresource: a.Subresource}.FullResource()
	where := " at the cluster scope"
	if a.Namespace != "" {
		where = fmt.Sprintf(" in the namespace %q", a.Namespace)
	}
	err := fmt.Errorf(
		"user %q cannot %s resource %q in API group %q%s", spec.User, a.Verb, full, a.Group, where,
	)
	if reason := cmp.Or(status.Reason, status.EvaluationError); reason != "" {
		err = fmt.Errorf("%w: %s", err, reason)
	}
	return err
}

// reviewed returns the answer to a question, which is asked only if no answer is known. A question that fails is asked
// again.
func reviewed[Q, A any](
	ctx context.Context, r *reviews, question Q, ask func(context.Context) (A, error),
) (A, error) {
	content, err := json.Marshal(question)
	if err != nil {
		var none A
		return none, err
	}
	key := struct { // a hash, because tokens are secrets
		kind string
		hash [sha256.Size]byte
	}{fmt.Sprintf("%T", question), sha256.Sum256(content)}
	if known, ok := r.known.Get(key); ok {
		return known.(A), nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	answer, err := ask(ctx)
	if err == nil {
		r.known.Add(key, answer, reviewTTL)
	}
	return answer, err
}

// errUnreviewed is the error of a request of the app itself. Its status is not the status of the response: if the API
// server forbids the request, the app lacks a permission, and not the user.
var errUnreviewed = errors.New("unable to authenticate or authorize the user")

func unreviewed(resource string, err error) error {
	if apierrs.IsForbidden(err) {
		return fmt.Errorf("%w: the app needs the permission to create %s: %w", errUnreviewed, resource, err)
	}
	return fmt.Errorf("%w: %w", errUnreviewed, err)
}

// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/converge/internal/access"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/kinds"
)

// webhook is a webhook that the API server calls.
type webhook struct {
	name, path      string
	mutating        bool
	ignoresFailures bool
	// exact is set for the match policy Exact.
	exact      bool
	rules      []admissionregistrationv1.RuleWithOperations
	objects    labels.Selector
	namespaces labels.Selector
	// process and handler are set in a process.
	process *process
	handler http.Handler
}

// webhookServer is the webhook server of a manager. It keeps what is registered.
type webhookServer struct {
	ctrlwebhook.Server

	handlers map[string]http.Handler
	// paths are the keys of handlers, in the order of their registration.
	paths []string
}

// Register registers a webhook.
func (s *webhookServer) Register(path string, handler http.Handler) {
	s.Server.Register(path, handler)
	s.handlers[path] = handler
	s.paths = append(s.paths, path)
}

// GetWebhookServer returns a server whose webhooks the API server in memory calls.
func (m *processManager) GetWebhookServer() ctrlwebhook.Server {
	if m.webhooks == nil {
		m.webhooks = &webhookServer{
			Server: ctrlwebhook.NewServer(ctrlwebhook.Options{}), handlers: map[string]http.Handler{},
		}
	}
	return m.webhooks
}

// startWebhooks lets the API server call the webhooks that a process has registered.
func (r *run) startWebhooks(m *processManager) {
	var unknown []string
	m.process.webhooks, unknown = r.running.webhooksOf(m.process, m.webhooks)
	if r.plan.recordsReference() {
		m.process.program.uncalled = unknown
	}
	r.startConversions(m)
}

// admission reads the configurations of webhooks of the program.
func (c *scenarioCheck) admission(prefix string, configurations []client.Object) {
	for i, obj := range configurations {
		field := fmt.Sprintf("%sWebhooks[%d]", prefix, i)
		switch obj := obj.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for n, w := range obj.Webhooks {
				c.webhook(fmt.Sprintf("%s.Webhooks[%d]", field, n), true, admissionregistrationv1.ValidatingWebhook{
					Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy,
					NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, MatchConditions: w.MatchConditions,
					MatchPolicy: w.MatchPolicy,
				})
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for n, w := range obj.Webhooks {
				c.webhook(fmt.Sprintf("%s.Webhooks[%d]", field, n), false, w)
			}
		default:
			c.problem("%s: %T is neither a MutatingWebhookConfiguration nor a ValidatingWebhookConfiguration", field, obj)
		}
	}
}

// webhook reads the configuration of a webhook. Both types of configurations have the fields that are read.
func (c *scenarioCheck) webhook(field string, mutating bool, w admissionregistrationv1.ValidatingWebhook) {
	hook := webhook{
		name: w.Name, mutating: mutating, rules: w.Rules,
		ignoresFailures: w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Ignore,
		exact:           w.MatchPolicy != nil && *w.MatchPolicy == admissionregistrationv1.Exact,
	}
	if w.ClientConfig.Service == nil || w.ClientConfig.Service.Path == nil {
		c.problem("%s: ClientConfig.Service.Path is required", field)
		return
	}
	hook.path = *w.ClientConfig.Service.Path
	if len(w.MatchConditions) > 0 {
		c.problem("%s: MatchConditions are not supported", field)
	}
	var err error
	if hook.objects, err = selectorOf(w.ObjectSelector); err != nil {
		c.problem("%s.ObjectSelector: %w", field, err)
	}
	if hook.namespaces, err = selectorOf(w.NamespaceSelector); err != nil {
		c.problem("%s.NamespaceSelector: %w", field, err)
	}
	c.program.webhooks = append(c.program.webhooks, hook)
}

// selectorOf returns a selector. One that is absent selects everything.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// webhooksOf returns the webhooks of a server: those that the configurations of the scenario name and, at the paths of
// builders, those of one kind. It also returns the paths that remain.
func (p *plan) webhooksOf(process *process, server *webhookServer) (found []webhook, unknown []string) {
	if server == nil {
		return nil, nil
	}
	for _, path := range server.paths {
		hooks := slices.DeleteFunc(slices.Clone(process.program.webhooks), func(h webhook) bool { return h.path != path })
		if len(hooks) == 0 && path != conversionPath {
			if h, ok := p.defaultWebhook(path); ok {
				hooks = append(hooks, h)
			} else {
				unknown = append(unknown, path)
			}
		}
		for _, h := range hooks {
			h.process, h.handler = process, server.handlers[path]
			found = append(found, h)
		}
	}
	return found, unknown
}

// uncalled returns the paths of webhooks that no configuration names.
func (p *plan) uncalled() []string {
	var paths []string
	for _, program := range p.programs {
		paths = append(paths, program.uncalled...)
	}
	return paths
}

// defaultWebhook returns the webhook at a path of the form that builders of controller-runtime use. It is called when
// objects are created and updated, as the markers of kubebuilder have it.
func (p *plan) defaultWebhook(path string) (webhook, bool) {
	for _, kind := range p.registry.Kinds() {
		suffix := "-" + strings.ReplaceAll(kind.Group, ".", "-") + "-" + kind.Version + "-" + strings.ToLower(kind.Kind)
		for prefix, mutating := range map[string]bool{"/mutate": true, "/validate": false} {
			if path == prefix+suffix {
				return webhook{
					name: path[1:2] + strings.ToLower(kind.Kind) + "-" + kind.Version + ".kb.io", path: path, mutating: mutating,
					rules:   []admissionregistrationv1.RuleWithOperations{ruleFor(kind)},
					objects: labels.Everything(), namespaces: labels.Everything(),
				}, true
			}
		}
	}
	return webhook{}, false
}

func ruleFor(kind *kinds.Kind) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{
			admissionregistrationv1.Create, admissionregistrationv1.Update,
		},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{kind.Group}, APIVersions: []string{kind.Version}, Resources: []string{kind.Plural},
		},
	}
}

// matches reports whether a rule of a webhook is about a write.
func (h *webhook) matches(r memapi.AdmissionRequest) bool {
	resource := r.Kind.Plural
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return slices.ContainsFunc(h.rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		return slices.ContainsFunc(rule.Operations, func(o admissionregistrationv1.OperationType) bool {
			return o == admissionregistrationv1.OperationAll || string(o) == string(r.Operation)
		}) && access.OneOf(rule.APIGroups, r.Kind.Group) && access.OneOf(rule.APIVersions, r.Kind.Version) &&
			slices.ContainsFunc(rule.Resources, func(pattern string) bool { return matchesResource(pattern, resource) })
	})
}

// matchesResource reports whether a resource matches a pattern of a rule: "*" is all resources, "*/*" also their
// subresources, "pods/*" the subresources of pods, and "*/scale" all scale subresources.
func matchesResource(pattern, resource string) bool {
	name, sub, _ := strings.Cut(resource, "/")
	wantName, wantSub, hasSub := strings.Cut(pattern, "/")
	switch {
	case wantName != "*" && wantName != name:
		return false
	case !hasSub:
		return sub == ""
	}
	return wantSub == "*" && (sub != "" || wantName == "*") || wantSub == sub && sub != ""
}

// selects reports whether the selectors of a webhook select a write.
func (h webhook) selects(r memapi.AdmissionRequest, server *memapi.Server) bool {
	if !h.objects.Empty() &&
		!h.objects.Matches(labelsIn(r.Object)) && !h.objects.Matches(labelsIn(r.OldObject)) {
		return false
	}
	if h.namespaces.Empty() || r.Key.Namespace == "" {
		return true
	}
	namespace := server.Get(corev1.SchemeGroupVersion.WithKind("Namespace"), types.NamespacedName{Name: r.Key.Namespace})
	return namespace != nil && h.namespaces.Matches(labels.Set(namespace.GetLabels()))
}

func labelsIn(object []byte) labels.Set {
	var partial metav1.PartialObjectMetadata
	if json.Unmarshal(object, &partial) != nil {
		return nil
	}
	return partial.Labels
}

// failed returns the error of the API server if it cannot call a webhook.
func (h webhook) failed(err error) error {
	return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w", h.name, err))
}

// denied returns the error of the API server if a webhook refuses a write.
// (k8s.io/apiserver, pkg/admission/plugin/webhook/errors/statuserror.go)
func (h webhook) denied(result *metav1.Status) error {
	status := metav1.Status{}
	if result != nil {
		status = *result
	}
	status.Status, status.Code = metav1.StatusFailure, max(status.Code, http.StatusBadRequest)
	message := fmt.Sprintf("admission webhook %q denied the request", h.name)
	switch {
	case status.Message != "":
		message += ": " + status.Message
	case status.Reason != "":
		message += ": " + string(status.Reason)
	default:
		message += " without explanation"
	}
	status.Message = message
	return &apierrors.StatusError{ErrStatus: status}
}

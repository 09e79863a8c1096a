// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// inheritedFile is the path of the first file that a child inherits, in the child.
	inheritedFile = "/dev/fd/3"
	// auditDelay limits how long the end of a test waits for its last audit event.
	auditDelay = 2 * time.Second
	// maxLoggedRequests limits how many requests a test's log contains.
	maxLoggedRequests = 2000
)

// startLogging starts a control plane for this process alone whose audit log tests can print. An existing cluster has
// no such log.
func startLogging(ctx context.Context, o Options) (*Sandbox, error) {
	switch {
	case o.Kubeconfig != "":
		return Start(ctx, o)
	case o.Backend == Memory:
		return nil, errors.New("sandbox: invalid options: LogRequests: the API in memory has no audit log")
	}
	if err := checkTempDir(); err != nil {
		return nil, err
	}
	binary, err := findBinary(ctx, &o)
	if err != nil {
		return nil, err
	}
	audit, inherited, err := openAuditLog(&o)
	if err != nil {
		return nil, err
	}
	s, err := startPrivate(ctx, binary, &o, inherited...)
	if err != nil {
		return nil, errors.Join(err, audit.Close())
	}
	s.audit = audit
	return s, nil
}

// openAuditLog opens the audit log of a control plane, and sets o.AuditLog if it is not set. The file then has no name:
// the control plane inherits it, and the system removes it when both processes have ended, in whatever way.
func openAuditLog(o *Options) (audit *os.File, inherited []*os.File, err error) {
	if o.AuditLog != "" {
		audit, err = os.OpenFile(o.AuditLog, os.O_CREATE|os.O_RDONLY, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("sandbox: AuditLog: %w", err)
		}
		return audit, nil, nil
	}
	if _, err := os.Stat(inheritedFile[:strings.LastIndexByte(inheritedFile, '/')]); err != nil {
		return nil, nil, errors.New("sandbox: LogRequests: on this system, AuditLog is required, too")
	}
	audit, err = os.CreateTemp("", "trueup-audit-*")
	if err == nil {
		err = os.Remove(audit.Name())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: LogRequests: %w", err)
	}
	o.AuditLog = inheritedFile
	return audit, []*os.File{audit}, nil
}

// requestLog is the part of an audit log that concerns one test.
type requestLog struct {
	audit     *os.File
	begin     int64
	namespace string
}

// newRequestLog returns the log of requests from now on, or nil if there is no audit log.
func newRequestLog(audit *os.File, namespace string) (*requestLog, error) {
	if audit == nil {
		return nil, nil
	}
	info, err := audit.Stat()
	if err != nil {
		return nil, fmt.Errorf("sandbox: LogRequests: %w", err)
	}
	return &requestLog{audit: audit, begin: info.Size(), namespace: namespace}, nil
}

// write writes the requests to the test's log if it is shown. The control plane writes an event after it has answered
// the request, so write waits for the event of the last request, which deletes the namespace.
func (l *requestLog) write(t testing.TB) {
	if l == nil || !t.Failed() && !testing.Verbose() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), auditDelay)
	defer cancel()
	var events []auditEvent
	_ = poll(ctx, func() (bool, error) { // an incomplete log is still useful
		events = l.events()
		return slices.ContainsFunc(events, func(e auditEvent) bool {
			return e.Verb == "delete" && e.Object != nil && e.Object.isNamespace() && e.Object.Name == l.namespace
		}), nil
	})
	t.Log("the API server answered these requests:\n" + table(events))
}

// events returns the test's requests in the order in which they arrived, each once.
func (l *requestLog) events() []auditEvent {
	info, err := l.audit.Stat()
	if err != nil {
		return nil
	}
	var events []auditEvent
	seen := map[string]bool{}
	for lines := json.NewDecoder(io.NewSectionReader(l.audit, l.begin, info.Size()-l.begin)); ; {
		var e auditEvent
		if lines.Decode(&e) != nil {
			break // the end, perhaps in the middle of a line
		}
		// A watch has an event at its begin and one at its end.
		if !seen[e.ID] && e.concerns(l.namespace) {
			events = append(events, e)
			seen[e.ID] = true
		}
	}
	slices.SortStableFunc(events, func(a, b auditEvent) int { return a.Received.Compare(b.Received) })
	return events
}

// auditEvent is what a line of an audit log says about a request.
type auditEvent struct {
	ID           string       `json:"auditID"`
	Verb         string       `json:"verb"`
	Path         string       `json:"requestURI"`
	User         auditUser    `json:"user"`
	Impersonated auditUser    `json:"impersonatedUser"`
	Object       *auditObject `json:"objectRef"`
	Response     struct {
		Code   int    `json:"code"`
		Reason string `json:"reason"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
	Content  struct {
		Metadata struct {
			GenerateName string `json:"generateName"`
		} `json:"metadata"`
	} `json:"requestObject"`
}

type auditUser struct {
	Name string `json:"username"`
}

type auditObject struct {
	Group       string `json:"apiGroup"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

func (o *auditObject) isNamespace() bool {
	return o.Group == corev1.GroupName && o.Resource == "namespaces"
}

// controlPlaneUsers are the users of the parts of the control plane.
var controlPlaneUsers = []string{"system:apiserver", "system:kube-controller-manager", "trueup-pod-runner"}

// concerns reports whether the request may be one of the test in the namespace, or is for one of its objects.
func (e *auditEvent) concerns(namespace string) bool {
	name := ""
	if e.Object != nil {
		if name = e.Object.Namespace; e.Object.isNamespace() {
			name = e.Object.Name
		}
	}
	return name == namespace || name == "" && !slices.Contains(controlPlaneUsers, e.User.Name)
}

// target returns what the request is for: a resource and an object or a namespace, otherwise a path.
func (e *auditEvent) target() (resource, name string) {
	o := e.Object
	if o == nil {
		return e.Path, ""
	}
	resource = join(join(o.Resource, ".", o.Group), "/", o.Subresource)
	if o.isNamespace() {
		return resource, o.Name
	}
	name = o.Name
	if prefix := e.Content.Metadata.GenerateName; name == "" && prefix != "" {
		name = prefix + "*" // the API server chose the rest
	}
	return resource, join(o.Namespace, "/", name)
}

// table returns a line for each request, the last ones if there are many.
func table(events []auditEvent) string {
	var b strings.Builder
	if omitted := len(events) - maxLoggedRequests; omitted > 0 {
		_, _ = fmt.Fprintf(&b, "(%d earlier ones are not shown)\n", omitted)
		events = events[omitted:]
	}
	columns := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, e := range events {
		resource, name := e.target()
		_, _ = fmt.Fprintf(
			columns, "%s\t%s\t%s\t%s\t%s\t%d %s\n", e.Received.Local().Format("15:04:05.000"), e.Verb, resource, name,
			cmp.Or(e.Impersonated.Name, e.User.Name), e.Response.Code, e.Response.Reason,
		)
	}
	_ = columns.Flush()
	return b.String()
}

// join joins two parts of a name. One may be empty.
func join(a, separator, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + separator + b
}

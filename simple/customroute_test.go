// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/app"
	"trueup.dev/logging"
	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

type (
	ShortURLSpec struct {
		Path string `json:"path"`
	}
	ShortURLStatus struct {
		Visits int64 `json:"visits,omitempty"`
	}
	ShortURL     = resource.TypedSpecStatusObject[ShortURLSpec, ShortURLStatus]
	ShortURLList = resource.TypedList[ShortURL]

	PlanetSpec struct{}
	Planet     = resource.TypedSpecObject[PlanetSpec]
	PlanetList = resource.TypedList[Planet]
)

var (
	shortURLKind = resource.Kind{Schema: resource.NewSimpleSchema(
		group, "v1", &ShortURL{}, &ShortURLList{}, resource.WithKind("ShortURL"), resource.WithPlural("shorturls"),
	)}
	planetKind = resource.Kind{Schema: resource.NewSimpleSchema(
		group, "v1", &Planet{}, &PlanetList{}, resource.WithKind("Planet"), resource.WithScope(resource.ClusterScope),
	)}
)

func routeCRDs() []any {
	planets := crd("Planet", "planets", "v1")
	planets.Spec.Scope = apiextensionsv1.ClusterScoped
	return []any{crd("ShortURL", "shorturls", "v1"), planets}
}

// gotoRoute redirects to the path of a short URL and counts the visit.
func gotoRoute(store *resource.TypedStore[*ShortURL]) simple.AppCustomRouteHandler {
	return func(ctx context.Context, w app.CustomRouteResponseWriter, req *app.CustomRouteRequest) error {
		short, err := resource.UpdateObject(ctx, store, req.ResourceIdentifier.Identifier(),
			func(short *ShortURL, _ bool) (*ShortURL, error) {
				short.Status.Visits++
				return short, nil
			}, resource.UpdateOptions{Subresource: resource.SubresourceStatus})
		if err != nil {
			return err
		}
		w.Header().Set("Location", "/"+short.Spec.Path)
		w.WriteHeader(http.StatusFound)
		return json.NewEncoder(w).Encode(map[string]string{"url": short.Spec.Path})
	}
}

// echo responds with what it received.
func echo(_ context.Context, w app.CustomRouteResponseWriter, req *app.CustomRouteRequest) error {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	id := req.ResourceIdentifier
	_, err = fmt.Fprintf(w, "%s %s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%q", req.Method, req.Path, id.Group, id.Version, id.Kind,
		id.Plural, id.Namespace, id.Name, req.URL.RawQuery, body, req.UserInfo.Username, req.Headers["Authorization"])
	return err
}

// routesConfig returns an app with routes of all forms.
func (e *env) routesConfig(name string) simple.AppConfig {
	e.Helper()
	clients := &simple.Clients{}
	store, err := resource.NewTypedStore[*ShortURL](shortURLKind, clients)
	e.Must(err)
	config := e.config(name)
	config.Clients = clients
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: shortURLKind, CustomRoutes: simple.AppCustomRouteHandlers{
			{Method: "GET", Path: "goto"}:                                 gotoRoute(store),
			{Method: simple.AppCustomRouteMethodPost, Path: "/echo/deep"}: echo,
			{Method: simple.AppCustomRouteMethodGet, Path: "panic"}: func(
				context.Context, app.CustomRouteResponseWriter, *app.CustomRouteRequest,
			) error {
				panic("on purpose")
			},
			{Method: simple.AppCustomRouteMethodGet, Path: "late-panic"}: func(
				_ context.Context, w app.CustomRouteResponseWriter, _ *app.CustomRouteRequest,
			) error {
				_, _ = io.WriteString(w, "half a respo")
				w.(http.Flusher).Flush()
				panic("on purpose")
			},
			{Method: simple.AppCustomRouteMethodGet, Path: "fails"}: func(
				ctx context.Context, _ app.CustomRouteResponseWriter, _ *app.CustomRouteRequest,
			) error {
				logging.FromContext(ctx).Info("about to fail")
				return errOnPurpose
			},
		}},
		{Kind: planetKind, CustomRoutes: simple.AppCustomRouteHandlers{{Method: "GET", Path: "moons"}: echo}},
	}
	config.VersionedCustomRoutes = map[string]simple.AppVersionRouteHandlers{"v1": {
		{Namespaced: true, Path: "foobar", Method: "GET"}:  echo,
		{Namespaced: false, Path: "foobar", Method: "GET"}: echo,
	}}
	return config
}

// token returns a bearer token of a service account of this name in the namespace of the test, which gets the
// permissions.
func (e *env) token(name string, rules ...rbacv1.PolicyRule) string {
	e.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Add(account)
	bound := e.Namespace + "-" + name
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: bound}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: bound},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: bound},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.Namespace, Name: name}},
	}
	e.Must(e.Create(e.Context(), role))
	e.Must(e.Create(e.Context(), binding))
	e.Cleanup(func() {
		e.Must(errors.Join(e.Delete(context.Background(), role), e.Delete(context.Background(), binding)))
	})
	request := &authenticationv1.TokenRequest{}
	e.Must(e.SubResource("token").Create(e.Context(), account, request))
	return request.Status.Token
}

func allow(verb string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{verb}}
}

// caller sends requests to the routes of an app.
type caller struct {
	e      *env
	client *http.Client
	server string
}

func (e *env) caller(server string, authority []byte) caller {
	e.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		e.Fatal("the server has no certificate")
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}
	e.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return caller{e, client, strings.TrimSuffix(server, "/")}
}

// send sends a request, such as "GET /path".
func (c caller) send(token, request string) (*http.Response, error) {
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(c.e.Context(), method, c.server+path, strings.NewReader("the body"))
	if err != nil {
		return nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return c.client.Do(r)
}

// call returns the status and the body of the response, which may be a Status.
func (c caller) call(token, request string) (code int, body string, err error) {
	response, err := c.send(token, request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	var status metav1.Status
	if json.Unmarshal(content, &status) == nil && status.Kind == "Status" {
		if int(status.Code) != response.StatusCode {
			c.e.Errorf("%s: status %d with body %s", request, response.StatusCode, content)
		}
		return response.StatusCode, status.Message, err
	}
	return response.StatusCode, string(content), err
}

// eventually waits for a response with a code: the server may not run yet, and the API server loads roles late.
func (c caller) eventually(token, request string, code int) (body string) {
	c.e.Helper()
	c.e.Eventually(func() error {
		got, text, err := c.call(token, request)
		if body = text; err == nil && got != code {
			err = fmt.Errorf("%s: status %d, want %d: %s", request, got, code, text)
		}
		return err
	})
	return body
}

// runner makes a runner with a webhook server.
func (e *env) runner() (*operator.Runner, caller) {
	e.Helper()
	options, authority := e.WebhookOptions()
	runner, err := operator.NewRunner(operator.RunnerConfig{
		KubeConfig: *e.RESTConfig(), WebhookConfig: operator.RunnerWebhookConfig{
			Host: options.Host, Port: options.Port, TLSConfig: operator.RunnerTLSConfig{
				CertPath: filepath.Join(options.CertDir, "tls.crt"), KeyPath: filepath.Join(options.CertDir, "tls.key"),
			},
		},
	})
	e.Must(err)
	return runner, e.caller("https://"+address(options.Port), authority)
}

// The API server authenticates and authorizes requests for routes of all forms, and handlers receive the identifiers.
func TestCustomRoutes(t *testing.T) {
	e := newEnv(t, routeCRDs()...)
	runner, at := e.runner()
	made := e.make(e.routesConfig("shorturl"))
	e.Go("the runner", func(ctx context.Context) error {
		return runner.Run(ctx, simple.NewAppProvider(
			app.ManifestData{AppName: "shorturl"}, nil, func(app.Config) (app.App, error) { return made, nil },
		))
	})
	e.Add(&ShortURL{ObjectMeta: metav1.ObjectMeta{Name: "it"}, Spec: ShortURLSpec{Path: "d/home"}})
	tokens := map[string]string{
		"":      "",
		"forge": "not.a.token",
		"all":   e.token("all", allow("*", "*")),
		"goto":  e.token("goto", allow("get", "shorturls/goto")),
		"one": e.token("one", rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: []string{"shorturls/goto"}, Verbs: []string{"get"},
			ResourceNames: []string{"it"},
		}),
		"post":  e.token("post", allow("create", "shorturls/echo")),
		"moons": e.token("moons", allow("get", "planets/moons")),
		"list":  e.token("list", allow("list", "foobar")),
		"parent": e.token("parent", allow("*", "shorturls"), rbacv1.PolicyRule{
			NonResourceURLs: []string{"*"}, Verbs: []string{"*"},
		}),
	}
	cluster := "/apis/" + group + "/v1/"
	objects := cluster + "namespaces/" + e.Namespace + "/shorturls/"
	at.eventually(tokens["list"], "GET "+cluster+"foobar", http.StatusOK) // the last role is loaded

	user := func(name string) string { return "system:serviceaccount:" + e.Namespace + ":" + name }
	for _, tc := range []struct {
		user, request string
		code          int
		body          string // "" for any
	}{
		{"", "GET " + objects + "it/goto", http.StatusUnauthorized, "a bearer token is required"},
		{"forge", "GET " + objects + "it/goto", http.StatusUnauthorized, ""},
		{"", "GET " + objects + "it/nowhere", http.StatusUnauthorized, "a bearer token is required"},

		{"goto", "GET " + objects + "it/goto", http.StatusFound, `{"url":"d/home"}` + "\n"},
		{"goto", "GET " + objects + "it/goto/", http.StatusFound, ""},
		{"goto", "GET " + objects + "other/goto", http.StatusNotFound, ""}, // the error of the store
		{"one", "GET " + objects + "it/goto", http.StatusFound, ""},
		{"one", "GET " + objects + "other/goto", http.StatusForbidden, fmt.Sprintf(
			`shorturls.%s "other" is forbidden: user %q cannot get resource "shorturls/goto" in API group %q in the `+
				`namespace %q`, group, user("one"), group, e.Namespace,
		)},
		{"list", "GET " + objects + "it/goto", http.StatusForbidden, ""},
		{"parent", "GET " + objects + "it/goto", http.StatusForbidden, ""}, // a subresource, and no bare path
		{"goto", "POST " + objects + "it/goto", http.StatusForbidden, ""},  // before the method
		{"goto", "GET " + objects + "it/nowhere", http.StatusForbidden, ""},

		{"all", "POST " + objects + "it/goto", http.StatusMethodNotAllowed, fmt.Sprintf(
			`custom route "goto" of %s/v1, Kind=ShortURL does not have method POST: it has GET`, group,
		)},
		{"all", "GET " + objects + "it/nowhere", http.StatusNotFound, fmt.Sprintf(
			`app "shorturl" has no custom route GET %sit/nowhere`, objects,
		)},
		{"all", "GET " + objects + "it", http.StatusNotFound, ""},
		{"all", "GET " + strings.TrimSuffix(objects, "/"), http.StatusNotFound, ""},
		{"all", "GET " + cluster + "shorturls/it/goto", http.StatusNotFound, ""}, // the kind is namespaced
		{"all", "GET " + cluster, http.StatusNotFound, ""},
		{"all", "GET /apis/other.example.com/v1/foobar", http.StatusNotFound, ""},
		{"all", "GET " + strings.Replace(cluster, "v1", "v2", 1) + "foobar", http.StatusNotFound, ""},

		{"post", "POST " + objects + "any/echo/deep?a=b", http.StatusOK, fmt.Sprintf(
			`POST echo/deep|%s|v1|ShortURL|shorturls|%s|any|a=b|the body|%s|[]`, group, e.Namespace, user("post"),
		)},
		{"moons", "GET " + cluster + "planets/mars/moons", http.StatusOK, fmt.Sprintf(
			`GET moons|%s|v1|Planet|planets||mars||the body|%s|[]`, group, user("moons"),
		)},
		{"moons", "GET " + cluster + "namespaces/" + e.Namespace + "/planets/mars/moons", http.StatusNotFound, ""},
		{"list", "GET " + cluster + "foobar", http.StatusOK, fmt.Sprintf(
			`GET foobar|%s|v1||||||the body|%s|[]`, group, user("list"),
		)},
		{"list", "GET " + cluster + "namespaces/" + e.Namespace + "/foobar", http.StatusOK, fmt.Sprintf(
			`GET foobar|%s|v1|||%s|||the body|%s|[]`, group, e.Namespace, user("list"),
		)},
		{"goto", "GET " + cluster + "foobar", http.StatusForbidden, fmt.Sprintf(
			`foobar.%s is forbidden: user %q cannot list resource "foobar" in API group %q at the cluster scope`,
			group, user("goto"), group,
		)},
		{"all", "OPTIONS " + cluster + "foobar", http.StatusMethodNotAllowed, ""},

		{
			"all", "GET " + objects + "it/panic", http.StatusInternalServerError,
			`Internal error occurred: app "shorturl": the custom route panicked`,
		},
		{"all", "GET " + objects + "it/fails", http.StatusInternalServerError, "Internal error occurred: on purpose"},
	} {
		code, body, err := at.call(tokens[tc.user], tc.request)
		if err != nil || code != tc.code || tc.body != "" && body != tc.body {
			t.Errorf("%s by %q: status %d, body %q, error %v; want %d, %q",
				tc.request, tc.user, code, body, err, tc.code, tc.body)
		}
	}
	response, err := at.send(tokens["all"], "POST "+objects+"it/goto")
	e.Must(err)
	e.Must(response.Body.Close())
	if got := response.Header.Get("Allow"); got != "GET" {
		t.Errorf("header Allow = %q, want GET", got)
	}
	if response, err = at.send("", "GET "+objects+"it/goto"); err != nil ||
		response.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("unauthorized: header %v, error %v", response.Header, err)
	}
	short := &ShortURL{ObjectMeta: metav1.ObjectMeta{Name: "it"}}
	if e.Must(e.Read(short)); short.Status.Visits == 0 {
		t.Error("the handler counted no visit")
	}
}

// An app without a Runner serves its routes itself, the routes of the app that embeds it. Failures are logged.
func TestCustomRoutes_OfAnAppThatRunsItself(t *testing.T) {
	e := newEnv(t, routeCRDs()...)
	config := e.routesConfig("alone")
	hooks := e.serveWebhooks(&config)
	log := &syncedLog{}
	config.ManagerOptions = func(o *ctrl.Options) { o.Logger = funcr.New(log.write, funcr.Options{}) }
	made := e.make(config)
	made.ServeWebhooksOf(outerRoutes{made})
	e.run(made)
	at := e.caller(*hooks.URL, hooks.CABundle)
	all := e.token("all", allow("*", "*"))
	objects := "/apis/" + group + "/v1/namespaces/" + e.Namespace + "/shorturls/"

	if got := at.eventually(all, "GET "+objects+"it/outer", http.StatusOK); got != "the outer app" {
		t.Errorf("the app that embeds the app responds %q", got)
	}
	at.eventually(all, "GET "+objects+"it/panic", http.StatusInternalServerError)
	at.eventually(all, "GET "+objects+"it/fails", http.StatusInternalServerError)
	for _, want := range []string{
		`"msg"="the custom route panicked" "error"="on purpose"`, `customroute_test.go`, `"msg"="the custom route failed"`,
		`"path"="` + objects + `it/fails"`, `"msg"="about to fail"`,
	} {
		if all := log.String(); !strings.Contains(all, want) {
			t.Errorf("the log does not have %s:\n%s", want, all)
		}
	}
	// The client must not believe that it has the whole response.
	if _, body, err := at.call(all, "GET "+objects+"it/late-panic"); err == nil {
		t.Errorf("a panic after the response has begun: body %q without an error", body)
	}
}

// outerRoutes is an app that embeds another and adds a route.
type outerRoutes struct{ *simple.App }

func (a outerRoutes) CallCustomRoute(
	ctx context.Context, w app.CustomRouteResponseWriter, req *app.CustomRouteRequest,
) error {
	if req.Path == "outer" {
		_, err := io.WriteString(w, "the outer app")
		return err
	}
	return a.App.CallCustomRoute(ctx, w, req)
}

type syncedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *syncedLog) write(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(&l.text, prefix, args)
}

func (l *syncedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// The context of a request ends with the app, and the response of its handler still arrives.
func TestCustomRoutes_Shutdown(t *testing.T) {
	e := newEnv(t)
	runner, at := e.runner()
	config := e.config("stopped")
	config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, CustomRoutes: simple.AppCustomRouteHandlers{
		{Method: "GET", Path: "wait"}: func(
			ctx context.Context, w app.CustomRouteResponseWriter, _ *app.CustomRouteRequest,
		) error {
			_, err := io.WriteString(w, "waiting\n")
			w.(http.Flusher).Flush()
			<-ctx.Done()
			return errors.Join(err, write(w, ctx.Err().Error()+"\n"))
		},
	}}}
	made := e.make(config)
	stop := e.Go("the runner", func(ctx context.Context) error {
		return runner.Run(ctx, simple.NewAppProvider(
			app.ManifestData{AppName: "stopped"}, nil, func(app.Config) (app.App, error) { return made, nil },
		))
	})
	token := e.token("waiter", allow("get", "widgets/wait", "widgets/ready"))
	path := "GET /apis/" + group + "/v1/namespaces/" + e.Namespace + "/widgets/it/"
	at.eventually(token, path+"ready", http.StatusNotFound)
	response, err := at.send(token, path+"wait")
	e.Must(err)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Scan()
	stop()
	lines.Scan()
	if lines.Text() != "context canceled" || lines.Err() != nil {
		t.Errorf("the handler wrote %q, error %v", lines.Text(), lines.Err())
	}
}

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// An app that may not review users responds that it fails, and does not say that the user lacks a permission.
func TestCustomRoutes_WithoutThePermissionToReview(t *testing.T) {
	e := newEnv(t)
	user := e.User(t, "routes-"+e.Namespace)
	handler, err := operator.AppRoutes{
		App: &simple.App{}, Name: "powerless", Kinds: []resource.Kind{widgetKind}, KubeConfig: user.RESTConfig(),
	}.Handler()
	e.Must(err)
	server := newServer(t, handler)
	r, err := http.NewRequestWithContext(e.Context(), http.MethodGet, server+"/apis/"+group+"/v1/foobar", http.NoBody)
	e.Must(err)
	r.Header.Set("Authorization", "Bearer x")
	response, err := http.DefaultClient.Do(r)
	e.Must(err)
	defer response.Body.Close()
	var status metav1.Status
	e.Must(json.NewDecoder(response.Body).Decode(&status))
	want := "Internal error occurred: unable to authenticate or authorize the user"
	if diff := cmp.Diff(want, status.Message); response.StatusCode != http.StatusInternalServerError || diff != "" {
		t.Errorf("status %s, message (-want +got):\n%s", response.Status, diff)
	}
}

func newServer(t *testing.T, handler http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// TestMain looks at the end whether what openapi.json describes was seen: every
// operation, parameter, header and field in a request that was accepted or in
// an answer. Each dialogue of a door was checked the other way round.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	whole := true // a part of the tests sees a part of the API
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		whole = whole && flag.Lookup(name).Value.String() == ""
	}
	if code == 0 && whole && !testing.Short() {
		for _, line := range contract().unseen() {
			fmt.Fprintln(os.Stderr, "openapi.json describes what no test has seen:", line)
			code = 1
		}
	}
	os.Exit(code)
}

// A checker holds dialogues against openapi.json, with nothing in JSON that is
// not described there.
type checker struct {
	doc      document
	raw      any
	compiler *jsonschema.Compiler

	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema // by pointer into the document
	seen    map[string]bool
}

const documentURL = "test:///openapi.json"

var contract = sync.OnceValue(newChecker)

func newChecker() *checker {
	c := &checker{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}, seen: map[string]bool{}}
	if err := json.Unmarshal(openAPIDocument, &c.doc); err != nil {
		panic(err)
	}
	var err error
	if c.raw, err = jsonschema.UnmarshalJSON(bytes.NewReader(openAPIDocument)); err != nil {
		panic(err)
	}
	closeObjects(c.raw)
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource(documentURL, c.raw); err != nil {
		panic(err)
	}
	return c
}

// closeObjects has schemas refuse fields that they do not name.
func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["properties"].(map[string]any); ok && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, inner := range v {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range v {
			closeObjects(inner)
		}
	}
}

// at makes a pointer into the document.
func at(path ...string) string {
	var b strings.Builder
	b.WriteString("#")
	for _, p := range path {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(p))
	}
	return b.String()
}

// validate holds JSON against the schema at pointer, and remembers its fields if
// it gets a schema for that.
func (c *checker) validate(pointer, text string, fields *schema) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	c.mu.Lock()
	s := c.schemas[pointer]
	if s == nil {
		if s, err = c.compiler.Compile(documentURL + pointer); err == nil {
			c.schemas[pointer] = s
		}
	}
	c.mu.Unlock()
	if err == nil {
		err = s.Validate(v)
	}
	if err == nil {
		c.note(fields, v)
	}
	return err
}

// note remembers the fields of JSON of that schema.
func (c *checker) note(s *schema, v any) {
	owner := ""
	for s != nil && s.Ref != "" {
		owner = typeName(s.Ref)
		s, _ = c.doc.Components.Schemas.get(owner)
	}
	if s == nil {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if p, ok := s.Properties.get(name); ok {
				c.saw(owner + "." + name)
				c.note(p, inner)
			}
		}
	case []any:
		for _, inner := range v {
			c.note(s.Items, inner)
		}
	}
}

func (c *checker) saw(what string) {
	c.mu.Lock()
	c.seen[what] = true
	c.mu.Unlock()
}

// unseen lists what is described and was not seen.
func (c *checker) unseen() (lines []string) {
	all := map[string]bool{}
	for _, p := range c.doc.Paths {
		for _, m := range p.Value {
			all[m.Value.ID] = true
			for _, f := range m.Value.Parameters {
				all[m.Value.ID+" "+f.In+" "+f.Name] = f.In != "path"
			}
			for _, r := range m.Value.Responses {
				all[m.Value.ID+" "+r.Name] = r.Name != "default"
				for _, h := range r.Value.Headers {
					all[m.Value.ID+" answer "+h.Name] = true
				}
			}
		}
	}
	for _, s := range c.doc.Components.Schemas {
		for _, p := range s.Value.Properties {
			all[s.Name+"."+p.Name] = true
		}
	}
	for what, counts := range all {
		if counts && !c.seen[what] {
			lines = append(lines, what)
		}
	}
	slices.Sort(lines)
	return lines
}

// A dialogue is a request and what came back.
type dialogue struct {
	pattern string // of the route; empty: none took it
	request *http.Request
	sent    string
	reply   *reply
}

// check holds a dialogue against the document.
func (c *checker) check(x *dialogue) error {
	got := x.reply
	if got.status == http.StatusRequestHeaderFieldsTooLarge {
		return nil // net/http's own
	}
	kind, _, _ := mime.ParseMediaType(got.header.Get("Content-Type"))
	if got.status >= 400 {
		return c.checkProblem(x, kind)
	}
	method, path, _ := strings.Cut(x.pattern, " ")
	method = strings.ToLower(method)
	operations, _ := c.doc.Paths.get(path)
	op, ok := operations.get(method)
	if !ok {
		return fmt.Errorf("%q is no operation", x.pattern)
	}
	c.saw(op.ID)
	status := strconv.Itoa(got.status)
	answer, ok := op.Responses.get(status)
	if !ok {
		return fmt.Errorf("%s: status %s is not described", op.ID, status)
	}
	c.saw(op.ID + " " + status)
	if err := c.checkHeaders(op, &answer, got.header); err != nil {
		return err
	}
	if err := c.checkRequest(op, x, at("paths", path, method, "requestBody", "content", "application/json", "schema")); err != nil {
		return err
	}
	body, ok := answer.Content.get(kind)
	if !ok {
		if len(answer.Content) > 0 || got.body != "" {
			return fmt.Errorf("%s: an answer of type %q is not described", op.ID, kind)
		}
		return nil
	}
	if kind != "application/json" || x.request.Method == http.MethodHead {
		return nil
	}
	if err := c.validate(at("paths", path, method, "responses", status, "content", kind, "schema"), got.body, body.Schema); err != nil {
		return fmt.Errorf("%s: the answer: %w", op.ID, err)
	}
	return nil
}

func (c *checker) checkProblem(x *dialogue, kind string) error {
	if x.request.Method == http.MethodHead {
		return nil
	}
	problem := &schema{Ref: "#/components/schemas/Problem"}
	if kind != wire.ProblemType {
		return fmt.Errorf("a problem of type %q", kind)
	}
	return c.validate(problem.Ref, x.reply.body, problem)
}

// usual are the headers of any answer.
var usual = []string{"Content-Type", "Content-Length", "Date", "Cache-Control", "X-Content-Type-Options", "Content-Security-Policy", "Vary"}

func (c *checker) checkHeaders(op *operation, answer *response, got http.Header) error {
	for name := range got {
		_, ok := answer.Headers.get(name)
		if !ok && !slices.Contains(usual, name) {
			return fmt.Errorf("%s: header %s of the answer is not described", op.ID, name)
		}
		c.saw(op.ID + " answer " + name)
	}
	return nil
}

// checkRequest holds a request that was accepted against the document.
func (c *checker) checkRequest(op *operation, x *dialogue, pointer string) error {
	for name := range x.request.URL.Query() {
		if strings.HasPrefix(name, "property.") {
			name = properties
		}
		if err := c.checkParameter(op, "query", name); err != nil {
			return err
		}
	}
	for name := range x.request.Header {
		if strings.HasPrefix(name, propertyHeader) {
			name = propertyHeader + "NAME"
		}
		if strings.HasPrefix(name, "Duemq-") || name == wire.IdempotencyHeader {
			if err := c.checkParameter(op, "header", name); err != nil {
				return err
			}
		}
	}
	if op.Body == nil || x.sent == "" {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(x.request.Header.Get("Content-Type"))
	if strings.Contains(kind, "json") && kind != "application/json" {
		return nil // lines
	}
	body, ok := op.Body.Content.get("application/json")
	if !ok {
		return nil // bytes
	}
	if err := c.validate(pointer, x.sent, body.Schema); err != nil {
		return fmt.Errorf("%s took a request that is not described: %w", op.ID, err)
	}
	return nil
}

func (c *checker) checkParameter(op *operation, in, name string) error {
	if !slices.ContainsFunc(op.Parameters, func(f field) bool { return f.In == in && f.Name == name }) {
		return fmt.Errorf("%s took %s in the %s, which is not described", op.ID, name, in)
	}
	c.saw(op.ID + " " + in + " " + name)
	return nil
}

// TestChecker plants what openapi.json does not describe, and expects that it
// is found.
func TestChecker(t *testing.T) {
	const clock = `{"now":"2026-12-01T09:00:00.000Z","suspect":false}`
	c := newChecker()
	for name, tt := range map[string]struct {
		plant func(x *dialogue)
		want  string
	}{
		"nothing":        {func(*dialogue) {}, ""},
		"operation":      {func(x *dialogue) { x.pattern = "GET /v1/clock/accept" }, "is no operation"},
		"status":         {func(x *dialogue) { x.reply.status = 202 }, "status 202"},
		"type":           {func(x *dialogue) { x.reply.header.Set("Content-Type", "text/plain") }, `type "text/plain"`},
		"header":         {func(x *dialogue) { x.reply.header.Set("X-Other", "1") }, "X-Other"},
		"field":          {func(x *dialogue) { x.reply.body = strings.Replace(clock, "}", `,"other":1}`, 1) }, "other"},
		"absent field":   {func(x *dialogue) { x.reply.body = `{"suspect":true}` }, "now"},
		"kind of value":  {func(x *dialogue) { x.reply.body = strings.Replace(clock, "false", `"no"`, 1) }, "suspect"},
		"query":          {func(x *dialogue) { x.request.URL.RawQuery = "other=1" }, "took other"},
		"option":         {func(x *dialogue) { x.request.Header.Set("Duemq-Other", "1") }, "took Duemq-Other"},
		"type of refuse": {func(x *dialogue) { x.reply.status = 400 }, "a problem of type"},
		"problem": {func(x *dialogue) {
			x.reply.status = 400
			x.reply.header.Set("Content-Type", wire.ProblemType)
			x.reply.body = `{"type":"t","title":"t","status":400,"detail":"d","code":"other","retryable":false}`
		}, "code"},
		"request": {func(x *dialogue) {
			x.pattern, x.sent = "POST /v1/leases/{lease}/extend", `{"other":1}`
			x.reply.status = 204
		}, "other"},
		"body where none is": {func(x *dialogue) {
			x.pattern, x.reply.status = "POST /v1/leases/{lease}/extend", 204
		}, "is not described"},
	} {
		x := &dialogue{
			pattern: "POST /v1/clock/accept",
			request: httptest.NewRequest(http.MethodPost, "/v1/clock/accept", nil),
			reply:   &reply{status: 200, body: clock, header: http.Header{"Content-Type": {"application/json"}}},
		}
		tt.plant(x)
		if err := c.check(x); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if len(c.unseen()) < 50 {
		t.Errorf("one operation was seen, and only %v is missed", c.unseen())
	}
}

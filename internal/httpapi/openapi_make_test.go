package httpapi

import (
	"cmp"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A maker makes the document: operations from routes, schemas from the types of
// the wire, and what they mean from their comments.
type maker struct {
	t       *testing.T
	says    map[string]string      // by "Type" and "Type.Field"
	values  map[string][][2]string // of a type's constants, with what they say
	schemas map[string]*schema
	strict  map[string]bool // types of requests: other fields are refused
}

// examples of types that are strings in JSON.
var examples = map[string][]string{
	"Time": {"2026-12-01T01:00:00.000Z"}, "Duration": {"1h30m0s"}, "Level": {"3", "10s"},
	"Number": {"12"},
}

func makeDocument(t *testing.T) *document {
	t.Helper()
	m := &maker{t: t, says: map[string]string{}, values: map[string][][2]string{}, schemas: map[string]*schema{}, strict: map[string]bool{}}
	m.readComments()
	d := &document{OpenAPI: "3.1.1", Servers: []server{{"/", "This server"}}}
	d.Info = info{Title: "DueMQ HTTP API", Version: "1", Description: "Messages that wait. " +
		"Numbers that may need 64 bits are strings, instants are RFC 3339 in UTC with milliseconds. " +
		"Fields, parameters and codes are added, never renamed: ignore what you do not know. " +
		"A request with a field or a parameter that the server does not know is refused."}
	d.Info.License.Name, d.Info.License.Identifier = "Apache License 2.0", "Apache-2.0"
	for i := range routes {
		if routes[i].in != nil {
			m.mark(routes[i].in)
		}
	}
	for i := range routes {
		rt := &routes[i]
		method, path, _ := strings.Cut(rt.pattern, " ")
		op := m.operation(rt, path)
		if name := op.Tags[0]; !slices.Contains(d.Tags, tag{name}) {
			d.Tags = append(d.Tags, tag{name})
		}
		at := slices.IndexFunc(d.Paths, func(p member[methods]) bool { return p.Name == path })
		if at < 0 {
			d.Paths, at = append(d.Paths, member[methods]{Name: path}), len(d.Paths)
		}
		d.Paths[at].Value = append(d.Paths[at].Value, member[*operation]{strings.ToLower(method), op})
	}
	problem := m.schema(reflect.TypeFor[wire.Problem]())
	d.Components.Responses = ordered[response]{{"Problem", response{
		Description: "What is wrong, and what to do",
		Headers:     ordered[field]{{"Retry-After", field{Description: "Seconds to wait, when the same request may succeed later", Schema: &schema{Type: types{"integer"}}}}},
		Content:     ordered[content]{{wire.ProblemType, content{problem}}},
	}}}
	for name, s := range m.schemas {
		d.Components.Schemas = append(d.Components.Schemas, member[*schema]{name, s})
	}
	slices.SortFunc(d.Components.Schemas, func(a, b member[*schema]) int { return cmp.Compare(a.Name, b.Name) })
	return d
}

// readComments reads what the package wire says about its types.
func (m *maker) readComments() {
	m.t.Helper()
	files, err := filepath.Glob("wire/*.go")
	if err != nil || len(files) == 0 {
		m.t.Fatalf("no sources: %v", err)
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			m.t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments)
		if err != nil {
			m.t.Fatal(err)
		}
		for _, decl := range file.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					m.readType(s, g.Doc)
				case *ast.ValueSpec:
					m.readConstant(s)
				}
			}
		}
	}
}

// sentence gives a comment as one paragraph without its trailing stop.
func sentence(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if text := strings.TrimSpace(g.Text()); text != "" {
			return strings.NewReplacer("\n\n", "\n", "\n", " ", "[", "", "]", "").Replace(text)
		}
	}
	return ""
}

func (m *maker) readType(s *ast.TypeSpec, doc *ast.CommentGroup) {
	m.says[s.Name.Name] = sentence(s.Doc, doc)
	body, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range body.Fields.List {
		for _, name := range f.Names {
			m.says[s.Name.Name+"."+name.Name] = sentence(f.Doc, f.Comment)
		}
	}
}

func (m *maker) readConstant(s *ast.ValueSpec) {
	kind, ok := s.Type.(*ast.Ident)
	if !ok || len(s.Values) != 1 {
		return
	}
	lit, ok := s.Values[0].(*ast.BasicLit)
	if !ok {
		return
	}
	if v, err := strconv.Unquote(lit.Value); err == nil {
		m.values[kind.Name] = append(m.values[kind.Name], [2]string{v, sentence(s.Doc, s.Comment)})
	}
}

// mark notes that a type, and what is in it, is read by the server.
func (m *maker) mark(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || m.strict[t.Name()] {
		return
	}
	m.strict[t.Name()] = true
	for f := range t.Fields() {
		m.mark(f.Type)
	}
}

func (m *maker) operation(rt *route, path string) *operation {
	id := runtime.FuncForPC(reflect.ValueOf(rt.function).Pointer()).Name()
	op := &operation{ID: id[strings.LastIndexByte(id, '.')+1:], Tags: []string{"server"}, Summary: rt.summary}
	if under, ok := strings.CutPrefix(path, "/v1/"); ok {
		op.Tags[0], _, _ = strings.Cut(under, "/")
	}
	for _, name := range find(path, `{([a-z]+)}`) {
		op.Parameters = append(op.Parameters, m.parameter(name, "path"))
	}
	for _, name := range rt.query {
		op.Parameters = append(op.Parameters, m.parameter(name, "query"))
	}
	if rt.note.options {
		for _, o := range options {
			f := m.parameter(o.name, "header")
			f.Name, f.Description = o.header, "The same as "+o.name+" in the query."
			op.Parameters = append(op.Parameters, f)
		}
		op.Parameters = append(op.Parameters, field{
			Name: propertyHeader + "NAME", In: "header", Schema: &schema{Type: types{"string"}},
			Description: "A user property, whose name in lower case stands in the place of NAME.",
		}, field{
			Name: wire.IdempotencyHeader, In: "header", Schema: &schema{Type: types{"string"}},
			Description: "The same request under it is carried out once. In quotes, or without.",
		})
	}
	op.Body = m.body(rt)
	answer := response{Description: http.StatusText(rt.status)}
	switch {
	case rt.out != nil:
		answer.Content = ordered[content]{{"application/json", content{m.schema(rt.out)}}}
	case rt.kind == "application/json":
		answer.Content = ordered[content]{{rt.kind, content{&schema{Type: types{"object"}}}}}
	case rt.kind != "":
		answer.Content = ordered[content]{{rt.kind, content{&schema{Type: types{"string"}}}}}
	}
	if rt.note.stream != "" {
		answer.Content = append(answer.Content, member[content]{rt.note.stream, content{&schema{Type: types{"string"}}}})
	}
	for _, h := range rt.note.headers {
		answer.Headers = append(answer.Headers, member[field]{h[0], field{Description: h[1], Schema: &schema{Type: types{"string"}}}})
	}
	for _, status := range append([]int{rt.status}, rt.also...) {
		answer.Description = http.StatusText(status)
		op.Responses = append(op.Responses, member[response]{strconv.Itoa(status), answer})
	}
	op.Responses = append(op.Responses, member[response]{"default", response{Ref: "#/components/responses/Problem"}})
	return op
}

func (m *maker) parameter(name, in string) field {
	m.t.Helper()
	at := slices.IndexFunc(parameters, func(p parameter) bool { return p.name == name })
	if at < 0 {
		m.t.Fatalf("%s is not among the parameters of routes.go", name)
	}
	p := parameters[at]
	f := field{Name: name, In: in, Description: p.says, Required: in == "path", Schema: &schema{Type: types{p.kind}}}
	if name == properties { // written into the query as property.a=1&property.b=2
		f.Style, f.Explode = "form", true
		f.Schema = &schema{Type: types{"object"}, Names: &schema{Pattern: `^property\..`}, Others: &schema{Type: types{"string"}}}
	}
	return f
}

func (m *maker) body(rt *route) *body {
	if rt.note.raw {
		return &body{
			Description: "The message, as it is: any bytes up to 4 MiB, whatever Content-Type says.",
			Content:     ordered[content]{{"application/octet-stream", content{}}, {"*/*", content{}}},
		}
	}
	if rt.in == nil {
		return nil
	}
	b := &body{Content: ordered[content]{{"application/json", content{m.schema(rt.in)}}}}
	b.Required = len(m.schemas[rt.in.Name()].Required) > 0
	if rt.note.lines != "" {
		b.Description = "In lines, each is an object of the array."
		b.Content = append(b.Content, member[content]{rt.note.lines, content{&schema{Type: types{"string"}}}})
	}
	return b
}

// schema gives the schema of a type: a reference, if it has a name.
func (m *maker) schema(t reflect.Type) *schema {
	m.t.Helper()
	if t.Kind() == reflect.Pointer {
		return m.schema(t.Elem())
	}
	if t.PkgPath() == reflect.TypeFor[wire.Problem]().PkgPath() {
		if _, ok := m.schemas[t.Name()]; !ok {
			s := &schema{}
			m.schemas[t.Name()] = s // before its fields, which may be of the same type
			m.named(t, s)
		}
		return &schema{Ref: "#/components/schemas/" + t.Name()}
	}
	switch t.Kind() {
	case reflect.String:
		return &schema{Type: types{"string"}}
	case reflect.Bool:
		return &schema{Type: types{"boolean"}}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return &schema{Type: types{"integer"}}
	case reflect.Float64:
		return &schema{Type: types{"number"}}
	case reflect.Map:
		return &schema{Type: types{"object"}, Others: m.schema(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &schema{Type: types{"string"}, Encoding: "base64"}
		}
		return &schema{Type: types{"array"}, Items: m.schema(t.Elem())}
	default:
		m.t.Fatalf("no schema for %v", t)
		return nil
	}
}

// named fills in the schema of a type of the wire.
func (m *maker) named(t reflect.Type, s *schema) {
	m.t.Helper()
	if m.says[t.Name()] == "" {
		m.t.Errorf("wire.%s has no comment", t.Name())
	}
	s.Description = m.says[t.Name()]
	s.Examples = examples[t.Name()]
	switch {
	case t.Kind() == reflect.Struct:
		s.Type = types{"object"}
		m.fields(t, s)
		if m.strict[t.Name()] {
			s.Others = false
		}
	case t == reflect.TypeFor[wire.Number]():
		s.Type, s.Pattern = types{"string"}, `^-?[0-9]+$`
	case t == reflect.TypeFor[wire.Level]():
		s.Type = types{"integer", "string"}
	default:
		s.Type = types{"string"}
		for _, v := range m.values[t.Name()] {
			s.Enum = append(s.Enum, v[0])
			line, says := v[0], v[1]
			if t == reflect.TypeFor[wire.Code]() {
				line += " (" + statusOf(v[0]) + ")"
				says = strings.TrimPrefix(strings.TrimLeft(says, "0123456789"), ": ")
			}
			s.Description += "\n" + line
			if says != "" {
				s.Description += ": " + says
			}
		}
	}
}

// statusOf gives the status with which a code is answered.
func statusOf(code string) string {
	at := slices.IndexFunc(table, func(r row) bool { return string(r.code) == code })
	if at < 0 {
		return "never"
	}
	return strconv.Itoa(table[at].status)
}

func (m *maker) fields(t reflect.Type, s *schema) {
	m.t.Helper()
	for f := range t.Fields() {
		if f.Anonymous {
			m.fields(f.Type, s)
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			m.t.Fatalf("wire.%s.%s has no name in JSON", t.Name(), f.Name)
		}
		if name == "-" {
			continue
		}
		v := m.schema(f.Type)
		if opts := strings.Split(rest, ","); slices.Contains(opts, "string") {
			v = &schema{Type: types{"string"}, Pattern: `^[0-9]+$`}
			if f.Type.Kind() == reflect.Int64 {
				v.Pattern = `^-?[0-9]+$`
			}
		}
		if !strings.Contains(rest, "omit") {
			s.Required = append(s.Required, name)
		}
		v.Description = m.says[t.Name()+"."+f.Name]
		s.Properties = append(s.Properties, member[*schema]{name, v})
	}
}

// marshal writes the document for people to compare.
func (d *document) marshal(t *testing.T) []byte {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		t.Fatal(err)
	}
	return []byte(b.String())
}

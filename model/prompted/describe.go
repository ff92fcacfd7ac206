package prompted

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"memgpt"
	"memgpt/schema"
)

// functions is what a request offers, in the forms in which models are told of it. It never changes.
type functions struct {
	names   []string
	said    string // field of the object that holds the text: "thoughts" where only a call speaks, else "text"
	text    string // descriptions
	example string // a call
	any     json.RawMessage
	atLeast json.RawMessage // with a call in any case
}

// The prompt's own words.
const (
	promptedWords = `# Functions
You act by calling functions. A call is one JSON object on a line of its own:
%CALL%
Write your text first, if any, then the calls, and stop there. Results come in the next message, as {"type":"function_result"}; never write them yourself. Functions and their arguments (? may be left out):
`
	constrainedWords = `# Functions
You act by calling functions. Each reply is one JSON object:
{"%SAID%":"...","calls":[%CALL%]}
Results come in the next message, as {"type":"function_result"}. Functions and their arguments (? may be left out):
`
)

// describe writes functions down, one a line.
func describe(tools []memgpt.ToolSpec) *functions {
	f := &functions{said: "text"}
	var b strings.Builder
	seen := map[string]bool{}
	example := tools[0]
	for _, t := range tools {
		if t.Name == memgpt.FuncSendMessage {
			example, f.said = t, "thoughts"
		}
		f.names = append(f.names, t.Name)
		b.WriteString("- " + signature(t, seen))
		if t.Description != "" {
			b.WriteString(" " + strings.Join(strings.Fields(t.Description), " "))
		}
		b.WriteByte('\n')
	}
	f.text = b.String()
	args := "{}"
	if s, err := schema.Parse(example.Parameters); err == nil {
		args = s.Example()
	}
	f.example = callText(memgpt.Call{Name: example.Name, Arguments: args})
	f.any = unionOf(tools, f.said, f.said == "thoughts")
	f.atLeast = unionOf(tools, f.said, true)
	return f
}

// signature writes a function's name and arguments. What an argument of that name was said to be before is not said again.
func signature(t memgpt.ToolSpec, seen map[string]bool) string {
	s, err := schema.Parse(t.Parameters)
	if err != nil {
		return t.Name + " (arguments as in " + string(t.Parameters) + ")"
	}
	args := s.Arguments()
	if len(args) == 0 {
		return t.Name + strings.ReplaceAll("("+s.Usage()+")", "(none)", "()")
	}
	words := make([]string, len(args))
	for i, a := range args {
		mark := "?: "
		if a.Required {
			mark = ": "
		}
		words[i] = a.Name + mark + a.Type
		if note := strings.Join(strings.Fields(a.Description), " "); note != "" && !seen[a.Name+note] {
			seen[a.Name+note] = true
			words[i] += " (" + note + ")"
		}
	}
	return t.Name + "(" + strings.Join(words, "; ") + ")"
}

// prompt returns the text that stands before the system instructions. It is the same for each request of a mode, so that
// providers' prompt caches hit.
func (f *functions) prompt(mode Mode) string {
	words := promptedWords
	if mode == Constrained {
		words = constrainedWords
	}
	return strings.NewReplacer("%CALL%", f.example, "%SAID%", f.said).Replace(words) + f.text
}

// schema returns what replies are held to.
func (f *functions) schema(choice memgpt.Choice) json.RawMessage {
	if choice == memgpt.ChoiceRequired {
		return f.atLeast
	}
	return f.any
}

// maxCalls bounds the calls of a reply that is held to a schema: a small model that may write any number never stops.
const maxCalls = 8

// unionOf makes the schema of replies: text first, so that the model thinks before it acts, then a list of calls of the
// functions. Fields stand in the order in which servers that make a grammar of it want them written.
func unionOf(tools []memgpt.ToolSpec, said string, called bool) json.RawMessage {
	var calls, defs []string
	for i, t := range tools {
		params := t.Parameters
		if len(params) == 0 || string(params) == "null" {
			params = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if bytes.Contains(params, []byte(`"$ref"`)) {
			at := "f" + strconv.Itoa(i)
			defs = append(defs, jsonText(at)+":"+string(rootedAt(params, "#/$defs/"+at)))
			params = json.RawMessage(`{"$ref":"#/$defs/` + at + `"}`)
		}
		calls = append(calls, `{"type":"object","properties":{"name":{"type":"string","enum":[`+jsonText(t.Name)+`]},"arguments":`+string(params)+
			`},"required":["name","arguments"],"additionalProperties":false}`)
	}
	least := 0
	if called {
		least = 1
	}
	text := `{"type":"object","properties":{"` + said + `":{"type":"string"},"calls":{"type":"array","items":{"anyOf":[` + strings.Join(calls, ",") +
		`]},"minItems":` + strconv.Itoa(least) + `,"maxItems":` + strconv.Itoa(maxCalls) + `}},"required":["` + said + `","calls"],"additionalProperties":false`
	if len(defs) > 0 {
		text += `,"$defs":{` + strings.Join(defs, ",") + `}`
	}
	return json.RawMessage(text + `}`)
}

// localRef is the start of a reference within a schema. Inside of a text its quotes would be escaped.
var localRef = regexp.MustCompile(`"\$ref"\s*:\s*"#`)

// rootedAt rewrites the references in a schema that moves to another place.
func rootedAt(params json.RawMessage, root string) []byte {
	return localRef.ReplaceAllLiteral(params, []byte(`"$ref":"`+root))
}

"use strict";
(() => {
  const made = (tag, text, ...children) => {
    const element = document.createElement(tag);
    if (text) element.textContent = text;
    element.append(...children);
    return element;
  };
  const kind = (shape) => shape.oneOf ? shape.oneOf.map(kind).join(" or ") : shape.enum ? shape.enum.join(", ")
    : shape.type === "array" ? `list of ${kind(shape.items ?? {})}` : shape.type ?? "anything";
  const schema = JSON.parse(document.getElementById("schema").textContent);
  for (const [path, operations] of Object.entries(schema.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const article = made("article", "", made("h2", "", made("code", `${method.toUpperCase()} ${path}`)), made("p", operation.summary));
      const body = operation.requestBody?.content["application/json"].schema;
      if (body) {
        const rows = Object.entries(body.properties).map(([name, shape]) => made(
          "tr", "", made("th", "", made("code", name)), made("td", kind(shape)),
          made("td", [body.required.includes(name) ? "needed" : "", shape.description ?? "", shape.default !== undefined ? `${shape.default} unless given` : ""].filter(Boolean).join("; "))));
        article.append(made("table", "", made("tbody", "", ...rows)));
      }
      const answers = Object.entries(operation.responses).map(([status, each]) => made("tr", "", made("th", status), made("td", each.description)));
      article.append(made("h3", "Answers"), made("table", "", made("tbody", "", ...answers)));
      document.getElementById("docs").append(article);
    }
  }
})();
